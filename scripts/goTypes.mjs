/**
 * Reads the API's Go structs for what neither OpenAPI nor protobuf tells: which fields are pointers (so that zero differs from absent),
 * and which are always written. Only names and two flags are taken.
 */
import fs from 'node:fs'
import path from 'node:path'

/** @returns Map of k8s.io.api.core.v1.Pod to { fields: Map of JSON name to { pointer, always, omits }, inline: type names } */
export function parseGoTypes(root) {
  const structs = new Map()
  for (const entry of fs.readdirSync(root, { recursive: true })) {
    const file = String(entry)
    if (!/(^|\/)types[^/]*\.go$/.test(file) || file.includes('/testdata/')) continue
    const packageName = path.dirname(file).replaceAll('/', '.')
    parseFile(fs.readFileSync(path.join(root, file), 'utf8'), packageName, structs)
  }
  return structs
}

function parseFile(text, packageName, structs) {
  const named = new Map([...text.matchAll(/^type (\w+) ([\w.[\]]+)$/gm)].map((match) => [match[1], match[2]]))
  for (const match of text.matchAll(/^type (\w+) struct \{\n([\s\S]*?)\n\}/gm)) {
    const fields = new Map()
    const inline = []
    for (const line of match[2].split('\n')) {
      const field = /^\t(?:(\w+)\s+)?(\*?)([\w.[\]*]+)\s+`json:"([^"]*)"/.exec(line)
      if (!field) continue
      const [, , star, type, tag] = field
      const [name, ...options] = tag.split(',')
      if (name === '') inline.push(type)
      if (name === '' || name === '-') continue
      const scalar = /^(string|bool|u?int(8|32|64)?|float64)$/.test(named.get(type) ?? type) || type.startsWith('[]') || type.startsWith('map[')
      const isList = (named.get(type) ?? type).startsWith('[]') || (named.get(type) ?? type).startsWith('map[')
      const omits = options.includes('omitempty') || options.includes('omitzero')
      // Structs are written even when omitempty is set; only omitzero leaves them out.
      const always = star === '' && (scalar || isList ? !omits : !options.includes('omitzero'))
      fields.set(name, { pointer: star === '*', always, omits })
    }
    structs.set(`${packageName}.${match[1]}`, { packageName, fields, inline })
  }
}

/** The flags of a JSON field, looking into inlined structs. */
export function findGoField(structs, name, field) {
  const struct = structs.get(name)
  if (!struct) return undefined
  const own = struct.fields.get(field)
  if (own) return own
  for (const type of struct.inline) {
    const local = type.includes('.') ? `k8s.io.api.core.v1.${type.split('.')[1]}` : `${struct.packageName}.${type}`
    const found = findGoField(structs, local, field)
    if (found) return found
  }
  return undefined
}
