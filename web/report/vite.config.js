import {defineConfig} from 'vite';

// One script and one style sheet, which CMake embeds into the binary.
export default defineConfig({
  build: {
    target: 'es2022',
    outDir: 'dist',
    lib: {
      entry: 'src/main.ts',
      name: 'weftReport',
      formats: ['iife'],
      fileName: () => 'report.js',
      cssFileName: 'report',
    },
  },
});
