#!/usr/bin/env node
/**
 * Writes the pages that are generated: the commands with their flags, the flags of each component, the exported names of each library, and the picture of
 * the layers. The pages of the libraries are made from dist/types, which a build writes.
 *
 *   node --import tsx scripts/reference/write.mjs DIR     (docs: the committed pages)
 */
import fs from 'node:fs'
import path from 'node:path'
import { commandsPage } from './commands.mjs'
import { componentPages } from './components.mjs'
import { layersPicture } from './layersPicture.mjs'
import { libraryPages } from './libraries.mjs'

const root = new URL('../../', import.meta.url).pathname
const [directory] = process.argv.slice(2)
if (directory === undefined) {
  console.error('usage: node --import tsx scripts/reference/write.mjs DIR')
  process.exit(2)
}
if (!fs.existsSync(path.join(root, 'dist/types'))) {
  console.error('error: dist/types is missing, which the pages of the libraries are made of\nhint: make build')
  process.exit(6)
}
const files = {
  'reference/commands.md': commandsPage(),
  ...(await componentPages()),
  ...libraryPages(path.join(root, 'dist/types')),
  'layers.svg': layersPicture(),
}
for (const [name, content] of Object.entries(files)) {
  const file = path.join(directory, name)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, content)
}
console.log(`${Object.keys(files).length} files written below ${directory}`)
// What the components import may hold handles open.
process.exit(0)
