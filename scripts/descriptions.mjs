#!/usr/bin/env node
/**
 * Collects the API's descriptions for OpenAPI and `kubectl explain` from the client-node package, at build time, into the file named by
 * the argument (default dist/descriptions.json): { "<definition>": ["<description>", { "<field>": "<description>" }] }.
 * No text of it is part of the repository. Where the package has no text for a field of a named type, that type's own text stands in.
 */
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** Only what models/all.js exports is of this release: the folder holds stale files too. */
export function currentModels(modelsFolder) {
  const list = fs.readFileSync(path.join(modelsFolder, 'all.js'), 'utf8')
  return [...list.matchAll(/from '\.\.\/models\/(\w+)\.js'/g)].map((match) => match[1])
}

/** The texts of one model's declaration file: { text, fields: { name: text }, types: { name: model } }. */
export function readModel(source) {
  const at = source.indexOf('export declare class ')
  const head = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(source.slice(0, at))
  const fields = {}
  const types = {}
  const body = source.slice(at, source.indexOf('static readonly discriminator'))
  for (const match of body.matchAll(/(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?'([^']+)'\??: ([^;]+);/g)) {
    if (match[1] !== undefined) fields[match[2]] = plain(match[1])
    types[match[2]] = match[3].replace(/^Array<(.*)>$/, '$1').trim()
  }
  return { text: head ? plain(head[1]) : undefined, fields, types }
}

/** One line of text again: the generator escapes quotes and flattens paragraphs to two spaces. */
function plain(comment) {
  const text = comment.replace(/^\s*\*\s?/gm, '').trim()
  const paragraphs = text.replace(/([.:]) {2,}(?=\S)/g, '$1\n\n').replace(/[ \t]+/g, ' ')
  return paragraphs.replaceAll('\\"', '"').replaceAll("\\'", "'").replaceAll('*_/', '*/')
}

/**
 * Which model is a definition: V1PodSpec is core's PodSpec; names that several groups share carry the group (CoreV1Event). A candidate
 * counts only if its fields are the definition's.
 */
export function matchModels(definitions, models) {
  const result = {}
  for (const [name, fields] of definitions) {
    const parts = name.split('.')
    const [kind, version, group] = [parts.at(-1), parts.at(-2), parts.at(-3)]
    const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1)
    const candidates = [`${capital(group)}${capital(version)}${kind}`, `${capital(version)}${kind}`, `${capital(group)}${kind}`, kind, `V1${kind}`]
    const found = candidates.find((candidate) => models[candidate] && sameNames(Object.keys(models[candidate].types), fields))
    if (found) result[name] = found
  }
  return result
}

/** The generator spells some names otherwise: _default, x_kubernetes_… */
function sameNames(a, b) {
  const bare = (name) => name.replace(/[^a-zA-Z0-9]/g, '').toLowerCase()
  const names = new Set(b.map(bare))
  return a.length === names.size && a.every((name) => names.has(bare(name)))
}

const here = new URL('..', import.meta.url).pathname

/** Everything that the file will hold. */
export function collectDescriptions(root = here) {
  const folder = path.join(root, 'node_modules/@kubernetes/client-node/dist/gen/models')
  const facts = fs.readFileSync(path.join(root, 'src/api/gen/facts.ts'), 'utf8')
  const literal = facts
    .slice(facts.indexOf("= '") + 3, facts.lastIndexOf("'"))
    .replaceAll("\\'", "'")
    .replaceAll('\\\\', '\\')
  const definitions = JSON.parse(literal).definitions.map(([name, rows]) => [name, rows.map(([field]) => field)])
  const models = Object.fromEntries(currentModels(folder).map((name) => [name, readModel(fs.readFileSync(path.join(folder, `${name}.d.ts`), 'utf8'))]))
  const matched = matchModels(definitions, models)
  const texts = {}
  for (const [name, fields] of definitions) {
    const model = models[matched[name]]
    if (!model) continue
    const bare = (text) => text.replace(/[^a-zA-Z0-9]/g, '').toLowerCase()
    const own = new Map(Object.keys(model.types).map((field) => [bare(field), field]))
    const described = fields.map((field) => {
      const key = own.get(bare(field)) ?? field
      return [field, model.fields[key] ?? models[model.types[key]]?.text]
    })
    texts[name] = [model.text ?? '', Object.fromEntries(described.filter(([, text]) => text !== undefined))]
  }
  return texts
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const out = process.argv[2] ?? path.join(here, 'dist/descriptions.json')
  const texts = collectDescriptions()
  fs.mkdirSync(path.dirname(out), { recursive: true })
  fs.writeFileSync(out, JSON.stringify(texts))
  console.log(`${Object.keys(texts).length} definitions described in ${out}`)
}
