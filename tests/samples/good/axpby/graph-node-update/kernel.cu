#include <cstdint>

namespace {

__global__ void axpby(const float* x, const float* z, float* y, int64_t n, float a, float b) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < n; i += stride) {
    y[i] = a * x[i] + b * z[i];
  }
}

cudaGraph_t graph = nullptr;
cudaGraphExec_t executable = nullptr;
cudaGraphNode_t node = nullptr;

}  // namespace

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b, void* stream) {
  float fa = static_cast<float>(a), fb = static_cast<float>(b);
  void* arguments[] = {&x, &z, &y, &N, &fa, &fb};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(axpby);
  parameters.gridDim = dim3(static_cast<unsigned>((N + 1023) / 1024));
  parameters.blockDim = dim3(256);
  parameters.kernelParams = arguments;
  cudaError_t status = cudaSuccess;
  if (executable == nullptr) {
    status = cudaGraphCreate(&graph, 0);
    if (status == cudaSuccess) status = cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters);
    if (status == cudaSuccess) status = cudaGraphInstantiate(&executable, graph, 0);
  } else {
    status = cudaGraphExecKernelNodeSetParams(executable, node, &parameters);
  }
  if (status == cudaSuccess) status = cudaGraphLaunch(executable, static_cast<cudaStream_t>(stream));
  return static_cast<int>(status);
}
