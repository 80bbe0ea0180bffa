/** A page for each library of the package: every exported name with its comment and its declaration, from the files that the package publishes. */
import path from 'node:path'
import { exportsOf } from './declarations.mjs'
import { asText, codeCell, generated, tableOf } from './markdownText.mjs'

/** Library → its declaration file, and the page that shows it at work. */
const libraries = {
  client: { file: 'main/package/client.d.ts', about: '[The client library](../client.md)' },
  controller: { file: 'main/package/controller.d.ts', about: '[The client library](../client.md#a-whole-operator)' },
  csi: { file: 'main/package/csi.d.ts', about: '[CSI drivers](../csi.md)' },
  scheduler: { file: 'main/package/scheduler.d.ts', about: '[The scheduler](../scheduler.md)' },
  testing: { file: 'testing/package.d.ts', about: '[A cluster in a test](../testing.md)' },
}

/** `export declare const pods: Resource<coreV1.Pod>;`: one of many that only differ in names. */
const resource = /^export declare const (\w+): Resource<([\w.]+)>;$/

/** @param types the folder of the declarations. Returns file → content */
export function libraryPages(types) {
  return Object.fromEntries(
    Object.entries(libraries).map(([name, { file, about }]) => [
      `reference/library-${name}.md`,
      pageOf(name, about, [...exportsOf(path.join(types, file)).values()]),
    ]),
  )
}

function pageOf(name, about, all) {
  const sorted = all.toSorted((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1))
  const resources = sorted.filter(({ text }) => text !== undefined && resource.test(text))
  const others = sorted.filter((one) => !resources.includes(one))
  const of = (kind) => others.filter((one) => one.kind === kind)
  const parts = [
    section('Functions and values', of('value').map(entry)),
    section('Classes', of('class').map(entry)),
    section('Types', of('type').map(entry)),
    section('Resources', resources.length === 0 ? [] : [resourceTable(resources)]),
    section('Types of the API', of('module').length === 0 ? [] : [moduleTable(of('module'))]),
  ]
  return `# skiff-kubernetes/${name}\n\n${generated} ${about} shows it at work.\n\n${parts.filter(Boolean).join('\n\n')}\n`
}

const section = (title, entries) => (entries.length === 0 ? '' : [`## ${title}`, ...entries].join('\n\n'))

/** A heading, the comment, the declaration. The code is a declaration, which is no program: `signature` says so to the tests of code blocks. */
function entry({ name, doc, text }) {
  return [`### ${name}`, ...(doc === '' ? [] : [asText(doc)]), `\`\`\`ts signature\n${shown(text)}\n\`\`\``].join('\n\n')
}

function shown(text) {
  return text
    .replace(/^export (declare )?/gm, '')
    .replace(/^ {4}#private;\n/gm, '')
    .replace(/^( {4})+/gm, (indent) => ' '.repeat(indent.length / 2))
}

function resourceTable(resources) {
  const rows = resources.map(({ text }) => resource.exec(text) ?? []).map(([, name, type]) => [codeCell(name), codeCell(type)])
  return `Each is handed to \`client.of(…)\`, which returns a client for objects of the type.\n\n${tableOf(['name', 'type of its objects'], rows)}`
}

function moduleTable(modules) {
  const rows = modules.map(({ name, module }) => [codeCell(name), codeCell(path.basename(module, '.d.ts'))])
  return `Types of Kubernetes' own objects, by group and version: \`coreV1.Pod\`.\n\n${tableOf(['name', 'group and version'], rows)}`
}
