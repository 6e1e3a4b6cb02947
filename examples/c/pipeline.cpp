// Compiles a graph into a bundle, then runs it on buffers of the program's own: RAII around the C interface.
//
//   make capi
//   c++ -std=c++17 -Ibuild/include examples/c/pipeline.cpp -Lbuild/lib -laneforge -Wl,-rpath,build/lib -o pipeline
//   ./pipeline emulator:m1 examples/c/counter.graph /tmp/counter.ane
#include <aneforge.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(aneforge_status status) {
  if (status != ANEFORGE_OK) throw std::runtime_error(aneforge_last_error());
}

struct Release {
  void operator()(aneforge_device *device) const { aneforge_close(device); }
  void operator()(aneforge_program *program) const { aneforge_release(program); }
};
using Device = std::unique_ptr<aneforge_device, Release>;
using Program = std::unique_ptr<aneforge_program, Release>;

Device open(const std::string &name) {
  aneforge_device *device = nullptr;
  check(aneforge_open(name.c_str(), &device));
  return Device(device);
}

Program load(const Device &device, const std::string &source) {
  aneforge_program *program = nullptr;
  check(aneforge_load(device.get(), source.c_str(), &program));
  return Program(program);
}

std::vector<std::vector<uint16_t>> buffers(const Program &program, int32_t side) {
  std::vector<std::vector<uint16_t>> made(aneforge_port_count(program.get(), side));
  for (size_t i = 0; i < made.size(); i++) {
    aneforge_port_info port{};
    check(aneforge_port(program.get(), side, i, &port));
    made[i].resize(port.bytes / sizeof(uint16_t), 0x3c00);  // fp16 ones
  }
  return made;
}

}  // namespace

int main(int argc, char **argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s DEVICE GRAPH BUNDLE\n", argv[0]);
    return 2;
  }
  check(aneforge_compile(argv[2], "m1", argv[3]));
  const Program program = load(open(argv[1]), argv[3]);
  auto inputs = buffers(program, ANEFORGE_INPUT), outputs = buffers(program, ANEFORGE_OUTPUT);
  std::vector<const void *> given;
  std::vector<void *> taken;
  for (auto &buffer : inputs) given.push_back(buffer.data());
  for (auto &buffer : outputs) taken.push_back(buffer.data());
  check(aneforge_run(program.get(), given.data(), given.size(), taken.data(), taken.size()));
  for (const auto &buffer : outputs) std::printf("%04x\n", static_cast<unsigned>(buffer.front()));
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
