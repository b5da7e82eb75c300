"""Protocol machines: pure, hosted by the runtimes.  They know the model and the kernels, nothing else."""
