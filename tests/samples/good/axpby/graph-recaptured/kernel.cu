#include <cstdint>

namespace {

__global__ void axpby(const float* x, const float* z, float* y, int64_t n, float a, float b) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = a * x[i] + b * z[i];
}

cudaStream_t capture = nullptr;
cudaGraphExec_t executable = nullptr;

}  // namespace

extern "C" int launch(const float* x, const float* z, float* y, int64_t N, double a, double b, void* stream) {
  if (capture == nullptr) cudaStreamCreateWithFlags(&capture, cudaStreamNonBlocking);
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(capture, cudaStreamCaptureModeThreadLocal);
  axpby<<<static_cast<unsigned>((N + 511) / 512), 512, 0, capture>>>(x, z, y, N, static_cast<float>(a),
                                                                     static_cast<float>(b));
  cudaError_t status = cudaStreamEndCapture(capture, &graph);
  if (status != cudaSuccess) return static_cast<int>(status);
  if (executable != nullptr) {
    cudaGraphExecUpdateResultInfo info;
    if (cudaGraphExecUpdate(executable, graph, &info) != cudaSuccess) {
      cudaGetLastError();
      cudaGraphExecDestroy(executable);
      executable = nullptr;
    }
  }
  if (executable == nullptr) status = cudaGraphInstantiate(&executable, graph, 0);
  if (status == cudaSuccess) status = cudaGraphLaunch(executable, static_cast<cudaStream_t>(stream));
  cudaGraphDestroy(graph);
  return static_cast<int>(status);
}
