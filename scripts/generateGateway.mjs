#!/usr/bin/env node
/**
 * Writes src/api/gen/gatewayDefinitions.ts: the CustomResourceDefinitions of the Gateway API's standard channel (types, rules, defaults, never descriptions).
 * Argument: the folder of the module sigs.k8s.io/gateway-api. Equal schemas of several versions are written once.
 */
import fs from 'node:fs'
import path from 'node:path'
import { load } from 'js-yaml'

const [moduleFolder] = process.argv.slice(2)
if (!moduleFolder) {
  console.error('usage: generateGateway.mjs GATEWAY_API_FOLDER')
  process.exit(2)
}
const kinds = ['backendtlspolicies', 'gatewayclasses', 'gateways', 'grpcroutes', 'httproutes', 'listenersets', 'referencegrants', 'tlsroutes']
const folder = path.join(moduleFolder, 'config/crd/standard')

/** A copy without descriptions. Below `properties`, a description is a field of that name. */
function stripped(value, isFieldMap = false) {
  if (Array.isArray(value)) return value.map((one) => stripped(one))
  if (value === null || typeof value !== 'object') return value
  const kept = Object.entries(value).filter(([key, inner]) => isFieldMap || key !== 'description' || typeof inner !== 'string')
  return Object.fromEntries(kept.map(([key, inner]) => [key, stripped(inner, !isFieldMap && key === 'properties')]))
}

const schemas = []
const places = new Map()

function placeOf(schema) {
  const text = JSON.stringify(schema)
  if (!places.has(text)) places.set(text, schemas.push(schema) - 1)
  return places.get(text)
}

const definitions = kinds.map((kind) => {
  const { metadata, spec } = load(fs.readFileSync(path.join(folder, `gateway.networking.k8s.io_${kind}.yaml`), 'utf8'))
  const versions = spec.versions.map(({ schema, ...version }) => ({ ...stripped(version), schema: placeOf(stripped(schema.openAPIV3Schema)) }))
  return { name: metadata.name, annotations: metadata.annotations, spec: { ...stripped(spec), versions } }
})
const text = JSON.stringify({ schemas, definitions }).replaceAll('\\', '\\\\').replaceAll("'", "\\'")
const out = new URL('../src/api/gen/gatewayDefinitions.ts', import.meta.url)
const header = '/** The Gateway API as a table (L1): written by scripts/generateGateway.mjs, read by src/main/layouts/ingress/gatewayApi.ts. */\n\n'
fs.writeFileSync(out, `${header}export const gatewayDefinitions = '${text}'\n`)
console.log(`${definitions.length} definitions, ${schemas.length} schemas, ${text.length} bytes`)
