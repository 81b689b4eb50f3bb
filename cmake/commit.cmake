# Writes OUTPUT, a header with the commit that SOURCE is at, if it is another than OUTPUT has. Run at every build.
#   cmake -DSOURCE=DIR -DOUTPUT=FILE -P commit.cmake
execute_process(COMMAND git describe --always --dirty --abbrev=12 "--exclude=*"
  WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit unknown) # not a clone, or no git
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define BLOOMLINE_COMMIT \"${commit}\"\n")
