#!/usr/bin/env node
/**
 * Builds the documentation as a site: README, CONTRIBUTING and docs/ as HTML files that open from a disk or any web server. No file of another
 * address is used: no font, script or image. Fails when a link leads nowhere, and names the page and the link.
 *
 *   node scripts/site/build.mjs OUT [--root DIR]
 */
import fs from 'node:fs'
import path from 'node:path'
import { checkLinks } from './checkLinks.mjs'
import { layOut } from './layout.mjs'
import { renderPage } from './markdown.mjs'
import { outputOf, readExamples, readSections } from './pages.mjs'

const assets = new URL('./assets/', import.meta.url).pathname

function build(root, out) {
  const sections = readSections(root).map(({ title, pages }) => ({ title, pages: pages.map((source) => readPage(root, source)) }))
  const examples = readExamples(root).map((example) => examplePage(root, example))
  const pages = [...sections.flatMap((section) => section.pages), ...examples]
  const images = fs.readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) => /\.(png|svg)$/.test(name))
  const faults = checkLinks(pages, new Set([...images.map((name) => name.replaceAll(path.sep, '/')), 'license.txt']))
  if (faults.length > 0) return faults
  fs.rmSync(out, { recursive: true, force: true })
  for (const page of pages) write(out, page.file, layOut(page, sections))
  for (const name of images) copy(path.join(root, 'docs', name), path.join(out, name))
  fs.cpSync(assets, path.join(out, 'assets'), { recursive: true })
  if (fs.existsSync(path.join(root, 'LICENSE'))) copy(path.join(root, 'LICENSE'), path.join(out, 'license.txt'))
  write(out, 'assets/search-index.js', searchIndex(pages))
  console.log(`${pages.length} pages written to ${out}`)
  return []
}

function readPage(root, source) {
  return { file: outputOf(source).file, source, ...renderPage(source, fs.readFileSync(path.join(root, source), 'utf8')) }
}

/** The files of a folder of docs/examples, each below a heading with its name. */
function examplePage(root, { name, files }) {
  const source = `docs/examples/${name}/index.md`
  const read = (file) => fs.readFileSync(path.join(root, 'docs/examples', name, file), 'utf8')
  const text = [`# Example: ${name}`, ...files.map((file) => `## ${file}\n\n\`\`\`\`ts\n${read(file)}\`\`\`\``)].join('\n\n')
  return { file: `examples/${name}/index.html`, source, ...renderPage(source, text) }
}

/** A script, because pages that are opened from a disk may not fetch: [file, title, heading, text] of each section. */
function searchIndex(pages) {
  const entries = pages.flatMap(({ file, title, sections }) => sections.map(({ id, heading, text }) => [`${file}#${id}`, title, heading, text]))
  return `globalThis.skiffSearchIndex = ${JSON.stringify(entries)}\n`
}

function write(out, file, content) {
  const full = path.join(out, file)
  fs.mkdirSync(path.dirname(full), { recursive: true })
  fs.writeFileSync(full, content)
}

function copy(from, to) {
  fs.mkdirSync(path.dirname(to), { recursive: true })
  fs.copyFileSync(from, to)
}

const args = process.argv.slice(2)
const rootAt = args.indexOf('--root')
const [, chosenRoot] = rootAt < 0 ? [] : args.splice(rootAt, 2)
const [out] = args
if (out === undefined || args.length > 1) {
  console.error('usage: node scripts/site/build.mjs OUT [--root DIR]')
  process.exit(2)
}
const faults = build(path.resolve(chosenRoot ?? new URL('../..', import.meta.url).pathname), path.resolve(out))
for (const fault of faults) console.error(`error: ${fault}`)
process.exitCode = faults.length > 0 ? 1 : 0
