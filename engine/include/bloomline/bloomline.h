// All of bloomline.
#pragma once

#include "bloomline/concurrent_counting_filter.h"
#include "bloomline/concurrent_filter.h"
#include "bloomline/config.h"
#include "bloomline/counting_filter.h"
#include "bloomline/error.h"
#include "bloomline/filter.h"
#include "bloomline/fpr_model.h"
#include "bloomline/layout.h"
#include "bloomline/memory.h"
#include "bloomline/overflow_policy.h"
#include "bloomline/target.h"
#include "bloomline/thread_pool.h"
#include "bloomline/topology.h"
#include "bloomline/version.h"
