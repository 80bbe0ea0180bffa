/**
 * Reads Kubernetes' generated.proto files: message → fields with number, type and the constant of a `+default` marker.
 * Only what those files use of the protobuf language is understood. Comments are read for markers and otherwise forgotten.
 */
import fs from 'node:fs'
import path from 'node:path'

/** @returns Map of full message name (k8s.io.api.core.v1.Pod) to { fields: Map of name to { number, type, default? } } */
export function parseProtos(folders) {
  const messages = new Map()
  for (const folder of folders) {
    for (const entry of fs.readdirSync(folder, { recursive: true })) {
      if (String(entry).endsWith('generated.proto')) parseFile(fs.readFileSync(path.join(folder, String(entry)), 'utf8'), messages)
    }
  }
  return messages
}

function parseFile(text, messages) {
  const packageName = /^package ([\w.]+);/m.exec(text)?.[1]
  let message
  let defaultText
  for (const line of text.split('\n')) {
    const trimmed = line.trim()
    const start = /^message (\w+) \{/.exec(trimmed)
    if (start) {
      message = { fields: new Map() }
      messages.set(`${packageName}.${start[1]}`, message)
    } else if (trimmed === '}') {
      message = undefined
    } else if (trimmed.startsWith('// +default=')) {
      defaultText = trimmed.slice('// +default='.length)
    } else if (message && trimmed !== '' && !trimmed.startsWith('//')) {
      const field = /^(?:(optional|repeated) )?(map<\w+, *[\w.]+>|[\w.]+) (\w+) = (\d+)/.exec(trimmed)
      if (field) message.fields.set(field[3], { number: Number(field[4]), type: qualify(field[2], packageName), ...constant(defaultText) })
      defaultText = undefined
    }
  }
}

const scalars = new Set(['string', 'int32', 'int64', 'bool', 'bytes', 'double'])

function qualify(type, packageName) {
  if (type.startsWith('map<') || scalars.has(type)) return type
  return type.startsWith('.') ? type.slice(1) : `${packageName}.${type}`
}

/** Defaults that name a Go constant: its value. */
const constants = { AzureDataDiskCachingReadWrite: 'ReadWrite', AzureSharedBlobDisk: 'Shared' }

/** The zero values "" and 0 are not worth a row: JSON omits them. */
function constant(text) {
  if (text === undefined || text === `""` || text === '0') return {}
  const reference = /^ref\((\w+)\)$/.exec(text)
  return { default: reference ? constants[reference[1]] : JSON.parse(text) }
}
