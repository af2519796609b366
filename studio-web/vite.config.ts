import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// Fixed file names and no hashes: the built page is committed, and a rebuild must give the same bytes.
export default defineConfig({
  base: './',
  plugins: [svelte()],
  build: {
    outDir: '../src/torchcaps/studio/static',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0, // the page's policy allows no data: addresses
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        chunkFileNames: '[name].js',
        assetFileNames: (asset) => (asset.names.some((name) => name.endsWith('.css')) ? 'app.css' : '[name][extname]'),
      },
    },
  },
  worker: { format: 'es', rollupOptions: { output: { entryFileNames: 'worker.js' } } },
});
