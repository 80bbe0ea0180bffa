/**
 * Reads configuration files (L1): YAML or JSON of one of the kinds that the reader takes, strictly: what the kind does not have, or has twice, is an
 * error that names where it stands. Upstream: apimachinery's serializer with EnableStrict.
 */
import { parseJson } from '#api/machinery/json'
import { parseYaml } from '#api/machinery/yaml'
import { decode, strictProblems } from '#api/schema/decode'
import type { Schema } from '#api/schema/schema'

export interface ConfigurationKind {
  readonly kind: string
  /** All that are still read: `apiserver.config.k8s.io/v1`. */
  readonly apiVersions: readonly string[]
  readonly schema: Schema
}

export interface DecodedConfiguration {
  readonly kind: string
  readonly apiVersion: string
  readonly value: Readonly<Record<string, unknown>>
}

/** @throws Error with every fault of the strict decoder, or with the reason why the text does not parse */
export function decodeConfiguration(content: string, kinds: readonly ConfigurationKind[]): DecodedConfiguration {
  if (content === '') throw new Error('empty config data')
  const { value, duplicates } = parse(content)
  const { kind, apiVersion } = identityOf(value, content)
  const known = kinds.find((one) => one.kind === kind && one.apiVersions.includes(apiVersion))
  if (!known) throw new Error(`no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`)
  const { object, unknownFields } = decode(value, known.schema, { unknown: 'collect', absent: 'keep' })
  const problems = strictProblems(unknownFields, duplicates)
  if (problems.length > 0) throw new Error(`strict decoding error: ${problems.join(', ')}`)
  return { kind, apiVersion, value: object }
}

function parse(content: string): { readonly value: unknown; readonly duplicates: readonly string[] } {
  if (/^\s*\{/.test(content)) return parseJson(content, { duplicates: true })
  return { value: parseYaml(content, { duplicates: 'refuse' }), duplicates: [] }
}

function identityOf(value: unknown, content: string): { readonly kind: string; readonly apiVersion: string } {
  const { kind, apiVersion } = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>
  if (typeof kind !== 'string' || kind === '') throw new Error(`Object 'Kind' is missing in '${content}'`)
  if (typeof apiVersion !== 'string' || apiVersion === '') throw new Error(`Object 'apiVersion' is missing in '${content}'`)
  return { kind, apiVersion }
}
