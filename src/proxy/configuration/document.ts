/**
 * Reads KubeProxyConfiguration documents and fills in upstream's defaults (L3, pure). As upstream, a field that does not exist is named in a warning and
 * ignored; a value of another type is refused. Upstream: loadConfig of cmd/kube-proxy/app/options.go, pkg/proxy/apis/config/v1alpha1/defaults.go (v1.36).
 */
import { formatDuration, parseDuration } from '#api/machinery/duration'
import { hostPort, isIpv6, parseIp } from '#api/machinery/ip'
import { parseYaml, toYaml } from '#api/machinery/yaml'
import { emptyMap } from '#base/bareMap'
import { configurationApiVersion, configurationFields, configurationKind, type Field, type Fields, type FieldType, isField } from './fields.ts'

/** As in the file, by upstream's names. */
export type GivenDocument = Readonly<Record<string, unknown>>

/** With every default. */
export interface ProxyConfigurationDocument {
  readonly bindAddress: string
  readonly bindAddressHardFail: boolean
  readonly clientConnection: { readonly burst: number; readonly contentType: string; readonly kubeconfig: string; readonly qps: number }
  readonly clusterCIDR: string
  readonly configSyncPeriod: string
  readonly conntrack: ConntrackDocument
  readonly detectLocal: { readonly bridgeInterface: string; readonly interfaceNamePrefix: string }
  readonly detectLocalMode: string
  readonly enableProfiling: boolean
  readonly featureGates: Readonly<Record<string, boolean>>
  readonly healthzBindAddress: string
  readonly hostnameOverride: string
  readonly iptables: ModeDocument & { readonly localhostNodePorts: boolean }
  readonly ipvs: IpvsDocument
  readonly logging: { readonly format?: 'text' | 'json'; readonly verbosity?: number }
  readonly metricsBindAddress: string
  readonly mode: string
  readonly nftables: ModeDocument
  readonly nodePortAddresses: readonly string[] | null
  readonly oomScoreAdj: number
  readonly showHiddenMetricsForVersion: string
}

interface ModeDocument extends PeriodDocument {
  readonly masqueradeAll: boolean
  readonly masqueradeBit: number
}

export interface PeriodDocument {
  readonly minSyncPeriod: string
  readonly syncPeriod: string
}

export interface IpvsDocument extends PeriodDocument {
  readonly excludeCIDRs: readonly string[] | null
  readonly scheduler: string
  readonly strictARP: boolean
  readonly tcpFinTimeout: string
  readonly tcpTimeout: string
  readonly udpTimeout: string
}

export interface ConntrackDocument {
  readonly maxPerCore: number
  readonly min: number
  readonly tcpBeLiberal: boolean
  readonly tcpCloseWaitTimeout: string
  readonly tcpEstablishedTimeout: string
  readonly udpStreamTimeout: string
  readonly udpTimeout: string
}

const isObject = (value: unknown): value is GivenDocument => typeof value === 'object' && value !== null && !Array.isArray(value)

const accepts: Readonly<Record<FieldType, { readonly what: string; test(value: unknown): boolean }>> = {
  boolean: { what: 'true or false', test: (value) => typeof value === 'boolean' },
  integer: { what: 'a whole number', test: (value) => Number.isSafeInteger(value) },
  number: { what: 'a number', test: (value) => typeof value === 'number' },
  duration: { what: 'a duration such as 1m30s', test: (value) => typeof value === 'string' && parseDuration(value) !== undefined },
  string: { what: 'a text', test: (value) => typeof value === 'string' },
  list: { what: 'a list of texts', test: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string') },
  gates: { what: 'an object of true and false', test: (value) => isObject(value) && Object.values(value).every((one) => typeof one === 'boolean') },
  any: { what: 'an object', test: isObject },
}

/** @throws Error that says what is wrong with the file */
export function readDocument(content: string): { readonly given: GivenDocument; readonly warnings: readonly string[] } {
  const parsed = parseYaml(content)
  if (!isObject(parsed)) throw new Error('failed to decode: the file holds no object')
  const { apiVersion, kind, ...fields } = parsed
  if (kind !== configurationKind || apiVersion !== configurationApiVersion) {
    throw new Error(
      `failed to decode: no kind "${kind ?? ''}" is registered for version "${apiVersion ?? ''}": use kind: ${configurationKind}, apiVersion: ${configurationApiVersion}`,
    )
  }
  const found: Findings = { unknown: [], wrong: [] }
  const given = known(fields, configurationFields, '', found)
  if (found.wrong.length > 0) throw new Error(`failed to decode: ${found.wrong.join(', ')}`)
  return { given, warnings: found.unknown.map((path) => `Using lenient decoding as strict decoding failed: unknown field "${path}"`) }
}

interface Findings {
  readonly unknown: string[]
  readonly wrong: string[]
}

/** The fields that exist, without those that are null. */
function known(given: GivenDocument, fields: Fields, path: string, found: Findings): GivenDocument {
  const kept: Record<string, unknown> = emptyMap()
  for (const [name, value] of Object.entries(given)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    const here = `${path}${name}`
    if (value === null) continue
    if (!field) found.unknown.push(here)
    else if (isField(field)) {
      if (accepts[field.type].test(value)) kept[name] = value
      else found.wrong.push(`${here}: ${JSON.stringify(value)} is not ${accepts[field.type].what}`)
    } else if (isObject(value)) kept[name] = known(value, field, `${here}.`, found)
    else found.wrong.push(`${here}: ${JSON.stringify(value)} is not an object`)
  }
  return { ...kept }
}

/** Objects are merged member by member; everything else is replaced. */
export function mergeDocuments(below: GivenDocument, above: GivenDocument): GivenDocument {
  const merged: Record<string, unknown> = Object.assign(emptyMap(), below)
  for (const [name, value] of Object.entries(above)) {
    const before = merged[name]
    merged[name] = isObject(value) && isObject(before) ? mergeDocuments(before, value) : value
  }
  return { ...merged }
}

/** The document with every default of upstream. A given 0 or empty text of a field with a default is that default, as Go cannot tell them apart. */
export function defaultDocument(given: GivenDocument): ProxyConfigurationDocument {
  const filled = fill(given, configurationFields) as unknown as ProxyConfigurationDocument
  const ofIpv6 = isIpv6(filled.bindAddress)
  return {
    ...filled,
    healthzBindAddress: addressOf(filled.healthzBindAddress, ofIpv6 ? '[::]' : '0.0.0.0', 10_256),
    metricsBindAddress: addressOf(filled.metricsBindAddress, ofIpv6 ? '[::1]' : '127.0.0.1', 10_249),
  }
}

/** Pointers upstream: a zero there is a value. */
const pointers = new Set(['maxPerCore', 'min', 'masqueradeBit', 'oomScoreAdj', 'localhostNodePorts', 'tcpEstablishedTimeout', 'tcpCloseWaitTimeout'])

function fill(given: GivenDocument, fields: Fields): GivenDocument {
  const filled = Object.entries(fields).map(([name, field]) => {
    const value = given[name]
    if (!isField(field)) return [name, fill((value ?? {}) as GivenDocument, field)]
    return [name, shownValue(field, value !== undefined && (pointers.has(name) || !isZero(field, value)) ? value : field.default)]
  })
  return Object.fromEntries(filled) as GivenDocument
}

function isZero({ type }: Field, value: unknown): boolean {
  return type === 'duration' ? parseDuration(value as string) === 0 : value === 0 || value === ''
}

function shownValue({ type }: Field, value: unknown): unknown {
  return type === 'duration' ? formatDuration(parseDuration(value as string) ?? 0) : value
}

function addressOf(given: string, byDefault: string, port: number): string {
  if (given === '') return `${byDefault}:${port}`
  return parseIp(given) ? hostPort(given, port) : given
}

/** The file that --write-config-to writes. */
export function documentText(document: ProxyConfigurationDocument): string {
  return toYaml({ apiVersion: configurationApiVersion, kind: configurationKind, ...document })
}
