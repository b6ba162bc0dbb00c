# tpc_compile(TARGET model.gguf [OUTPUT model.tpc] [OPTIONS --devices cpu,cpu -c 8k])
#
# Adds a target that compiles a model into an artefact. The artefact is compiled again if a file of the model, the
# topology file or tpc itself changes.
cmake_minimum_required(VERSION 3.20)
find_program(TPC tpc REQUIRED)

function(tpc_compile target model)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "OUTPUT" "OPTIONS")
    get_filename_component(model "${model}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    if(NOT arg_OUTPUT)
        get_filename_component(name "${model}" NAME_WLE)
        set(arg_OUTPUT "${name}.tpc")
    endif()
    get_filename_component(output "${arg_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
    add_custom_command(
        OUTPUT "${output}"
        COMMAND "${TPC}" compile "${model}" -o "${output}" --depfile "${output}.d" ${arg_OPTIONS}
        DEPENDS "${model}" "${TPC}"
        DEPFILE "${output}.d"
        COMMENT "Compiling ${model}"
        VERBATIM)
    add_custom_target(${target} ALL DEPENDS "${output}")
endfunction()
