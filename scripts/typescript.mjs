/**
 * `node --import ./scripts/typescript.mjs FILE.ts`: runs TypeScript as the test runner does. Every file is transpiled once and kept in
 * node_modules/.cache; a test process that imports 700 files starts in half the time that it takes with tsx.
 */
import { register } from 'node:module'

process.setSourceMapsEnabled(true)
register('./typescriptHooks.mjs', import.meta.url)
