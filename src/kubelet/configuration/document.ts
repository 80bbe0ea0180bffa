/**
 * Reads KubeletConfiguration documents (L3, pure): one file, drop-ins merged over it in order, defaults for the rest. A field that does not exist, or
 * holds another type, is refused. Upstream: kubelet/kubeletconfig/configfiles, cmd/kubelet/app/server.go mergeKubeletConfigurations (v1.36).
 */
import { formatDuration, parseDuration } from '#api/machinery/duration'
import { parseYaml } from '#api/machinery/yaml'
import { bareMap, emptyMap } from '#base/bareMap'
import { configurationApiVersion, configurationFields, configurationKind, type FieldType } from './fields.ts'

/** As in the file, by upstream's names. */
export type ConfigurationDocument = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** What a text must hold. */
const accepts: Readonly<Record<FieldType, { readonly what: string; test(value: unknown): boolean }>> = {
  boolean: { what: 'true or false', test: (value) => typeof value === 'boolean' },
  integer: { what: 'a whole number', test: (value) => Number.isSafeInteger(value) },
  number: { what: 'a number', test: (value) => typeof value === 'number' },
  duration: { what: 'a duration such as 1m30s', test: (value) => typeof value === 'string' && parseDuration(value) !== undefined },
  string: { what: 'a text', test: (value) => typeof value === 'string' },
  list: { what: 'a list of texts', test: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string') },
  integers: { what: 'a list of whole numbers', test: (value) => Array.isArray(value) && value.every((one) => Number.isSafeInteger(one)) },
  map: { what: 'an object of texts', test: (value) => isObject(value) && Object.values(value).every((one) => typeof one === 'string') },
  gates: { what: 'an object of true and false', test: (value) => isObject(value) && Object.values(value).every((one) => typeof one === 'boolean') },
  object: { what: 'an object', test: isObject },
  objects: { what: 'a list of objects', test: (value) => Array.isArray(value) && value.every(isObject) },
}

/**
 * @param file only named in errors
 * @throws Error that names the file and the field
 */
export function readDocument(text: string, file: string): ConfigurationDocument {
  const failed = (why: string) => new Error(`failed to load kubelet config file, path: ${file}, error: ${why}`)
  let parsed: unknown
  try {
    parsed = parseYaml(text)
  } catch (error) {
    throw failed((error as Error).message)
  }
  if (parsed === null || parsed === undefined) throw failed('file was empty')
  if (!isObject(parsed)) throw failed('it holds no object')
  const { apiVersion, kind, ...given } = parsed
  if (kind !== configurationKind || apiVersion !== configurationApiVersion) {
    throw failed(
      `no kind "${kind ?? ''}" is registered for version "${apiVersion ?? ''}": use kind: ${configurationKind}, apiVersion: ${configurationApiVersion}`,
    )
  }
  const fields = Object.entries(given).filter(([, value]) => value !== null)
  const faults = fields.flatMap(([name, value]) => {
    const known = Object.hasOwn(configurationFields, name) ? configurationFields[name] : undefined
    if (!known) return [`unknown field "${name}"`]
    return accepts[known.type].test(value) ? [] : [`${name}: ${JSON.stringify(value)} is not ${accepts[known.type].what}`]
  })
  if (faults.length > 0) throw failed(`strict decoding error: ${faults.join(', ')}`)
  return Object.fromEntries(fields)
}

/** Objects are merged member by member; lists and everything else are replaced, as with a JSON merge patch. */
export function mergeDocuments(below: ConfigurationDocument, above: ConfigurationDocument): ConfigurationDocument {
  const merged: Record<string, unknown> = bareMap({ ...below })
  for (const [name, value] of Object.entries(above)) {
    const before = merged[name]
    merged[name] = isObject(value) && isObject(before) ? mergeDocuments(before, value) : value
  }
  return { ...merged }
}

/** The document with every default that upstream fills in. */
export function defaultDocument(given: ConfigurationDocument): ConfigurationDocument {
  const filled: Record<string, unknown> = emptyMap()
  for (const [name, { type, default: byDefault }] of Object.entries(configurationFields)) {
    const value = isUnset(type, given[name]) ? byDefault : given[name]
    if (value !== undefined) filled[name] = type === 'duration' ? normalDuration(value as string) : value
  }
  // For backward compatibility upstream reports as often as it looks when only looking was configured.
  if (given.nodeStatusReportFrequency === undefined && given.nodeStatusUpdateFrequency !== undefined) {
    filled.nodeStatusReportFrequency = filled.nodeStatusUpdateFrequency
  }
  if (given.serializeImagePulls === undefined) filled.serializeImagePulls = ((given.maxParallelImagePulls as number | undefined) ?? 0) < 2
  if (((filled.podPidsLimit as number | undefined) ?? -1) < 0) filled.podPidsLimit = -1
  return { ...filled, authentication: authenticationOf(given.authentication), authorization: authorizationOf(given.authorization) }
}

/** Go knows no difference between a duration of 0 and none. */
function isUnset(type: FieldType, value: unknown): boolean {
  return value === undefined || (type === 'duration' && parseDuration(value as string) === 0)
}

function normalDuration(text: string): string {
  return formatDuration(parseDuration(text) ?? 0)
}

interface Authentication {
  readonly x509?: { readonly clientCAFile?: string }
  readonly webhook?: { readonly enabled?: boolean; readonly cacheTTL?: string }
  readonly anonymous?: { readonly enabled?: boolean }
}

function authenticationOf(given: unknown) {
  const { x509 = {}, webhook = {}, anonymous = {} } = (given ?? {}) as Authentication
  return {
    x509: { ...(x509.clientCAFile ? { clientCAFile: x509.clientCAFile } : {}) },
    webhook: { enabled: webhook.enabled ?? true, cacheTTL: webhook.cacheTTL ?? '2m0s' },
    anonymous: { enabled: anonymous.enabled ?? false },
  }
}

interface Authorization {
  readonly mode?: string
  readonly webhook?: { readonly cacheAuthorizedTTL?: string; readonly cacheUnauthorizedTTL?: string }
}

function authorizationOf(given: unknown) {
  const { mode = 'Webhook', webhook = {} } = (given ?? {}) as Authorization
  return { mode, webhook: { cacheAuthorizedTTL: webhook.cacheAuthorizedTTL ?? '5m0s', cacheUnauthorizedTTL: webhook.cacheUnauthorizedTTL ?? '30s' } }
}

export type AuthenticationSettings = ReturnType<typeof authenticationOf>
export type AuthorizationSettings = ReturnType<typeof authorizationOf>
