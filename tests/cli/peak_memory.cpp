// peak_memory FILE PROGRAM [ARGUMENT...]: runs the program and writes the most memory that it had,
// in KiB, into FILE; ends as the program does. To the kernel a process has had the memory of the
// one that started it, so a large test program cannot measure by itself.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  pid_t child = 0;
  if (posix_spawnp(&child, argv[2], nullptr, nullptr, argv + 2, environ) != 0) return 127;
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child) return 126;
  std::FILE* file = std::fopen(argv[1], "w");
  if (file == nullptr) return 125;
  std::fprintf(file, "%ld\n", usage.ru_maxrss);
  std::fclose(file);
  if (WIFSIGNALED(status)) std::raise(WTERMSIG(status));
  return WEXITSTATUS(status);
}
