// All of bloomline.
#pragma once

#include "bloomline/config.h"
#include "bloomline/error.h"
#include "bloomline/filter.h"
#include "bloomline/fpr_model.h"
#include "bloomline/layout.h"
#include "bloomline/memory.h"
#include "bloomline/target.h"
#include "bloomline/version.h"
