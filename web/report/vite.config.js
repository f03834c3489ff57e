import {defineConfig} from 'vite';

// One script and one style sheet of each page, which CMake embeds into the binary: of the report
// by default, of the service's console by `--mode console`.
export default defineConfig(({mode}) => {
  const page = mode === 'console' ? 'console' : 'report';
  return {
    build: {
      target: 'es2022',
      outDir: 'dist',
      emptyOutDir: page === 'report',
      lib: {
        entry: page === 'console' ? 'src/console/main.ts' : 'src/main.ts',
        name: page === 'console' ? 'weftConsole' : 'weftReport',
        formats: ['iife'],
        fileName: () => `${page}.js`,
        cssFileName: page,
      },
    },
  };
});
