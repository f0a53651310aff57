# Makes one static library braze_<name> per row of layers.json, with the row's edges and no others.
#
# A layer's headers live behind its own include root, <build>/layers/<name>/braze/<name>, a link to
# src/braze/<name>. So the compiler itself does not find a header that the row does not allow.
# Doors (third-party headers) are PRIVATE: they stop at the layer that names them.

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS layers.json)
file(READ layers.json rules)

function(braze_json_list out row key)
  string(JSON length LENGTH "${row}" ${key})
  set(items "")
  while(length GREATER 0)
    math(EXPR length "${length} - 1")
    string(JSON item GET "${row}" ${key} ${length})
    list(PREPEND items "${item}")
  endwhile()
  set(${out} "${items}" PARENT_SCOPE)
endfunction()

function(braze_add_layer name uses doors)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/braze/${name}/*.cpp)
  if(NOT sources)  # headers only
    file(WRITE ${CMAKE_BINARY_DIR}/layers/${name}.cpp "")
    set(sources ${CMAKE_BINARY_DIR}/layers/${name}.cpp)
  endif()
  add_library(braze_${name} STATIC ${sources})
  set(root ${CMAKE_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${root}/braze)
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/braze/${name} ${root}/braze/${name} SYMBOLIC)
  target_include_directories(braze_${name} PUBLIC ${root})
  list(TRANSFORM uses PREPEND braze_)
  list(TRANSFORM doors PREPEND door_)
  target_link_libraries(braze_${name} PUBLIC ${uses} PRIVATE braze_options ${doors})
endfunction()

# Rows are ordered bottom up and `uses` names earlier rows only: cycles cannot be written down.
set(BRAZE_LAYERS "")
string(JSON rows LENGTH "${rules}" layers)
math(EXPR last "${rows} - 1")
foreach(index RANGE ${last})
  string(JSON row GET "${rules}" layers ${index})
  string(JSON name GET "${row}" name)
  braze_json_list(uses "${row}" uses)
  braze_json_list(doors "${row}" doors)
  set(missing ${uses})
  list(REMOVE_ITEM missing ${BRAZE_LAYERS} "")
  if(NOT BRAZE_EXTENSION AND (doors OR missing))
    continue()  # needs Python or torch, or stands on a layer that does
  endif()
  if(missing)
    message(FATAL_ERROR "layers.json: ${name} uses ${missing}, which is not in an earlier row")
  endif()
  braze_add_layer(${name} "${uses}" "${doors}")
  list(APPEND BRAZE_LAYERS ${name})
endforeach()
target_link_libraries(braze_support PUBLIC door_fmt)
