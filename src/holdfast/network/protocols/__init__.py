"""Protocol machines: pure state machines that hosts run. They import only the model, the kernels and the
engine."""
