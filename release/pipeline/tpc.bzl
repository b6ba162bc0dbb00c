"""A Bazel rule for artefacts.

    load("//release/pipeline:tpc.bzl", "tpc_artefact")
    tpc_artefact(name = "model", model = "model.gguf", options = ["--devices", "cpu,cpu", "-c", "8k"])
"""

def _tpc_artefact_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".tpc")
    ctx.actions.run(
        executable = ctx.executable.tpc,
        arguments = ["compile", ctx.file.model.path, "-o", output.path] + ctx.attr.options,
        inputs = [ctx.file.model] + ctx.files.shards,
        outputs = [output],
        mnemonic = "TpcCompile",
        progress_message = "Compiling %{input}",
    )
    return [DefaultInfo(files = depset([output]))]

tpc_artefact = rule(
    implementation = _tpc_artefact_impl,
    attrs = {
        "model": attr.label(allow_single_file = [".gguf"], mandatory = True, doc = "The model, or its first shard."),
        "shards": attr.label_list(allow_files = [".gguf"], doc = "Further shards of the model."),
        "options": attr.string_list(doc = "Placement options."),
        "tpc": attr.label(
            executable = True,
            cfg = "exec",
            default = "@tpc//:tpc",
            allow_single_file = True,
            doc = "The program.",
        ),
    },
)
