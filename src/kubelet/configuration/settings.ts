/**
 * Converts a KubeletConfiguration document to the kubelet's settings, and back for /configz (L3, pure). A supported field has the same name in both,
 * durations with the suffix Ms; other fields are not supported, which a warning states when they are set.
 * In order: fields.ts lists the fields, document.ts reads and merges files, validate.ts and validateNode.ts check the result, this file converts it.
 */
import { formatDuration, parseDuration } from '#api/machinery/duration'
import { parseQuantity, quantityAsNumber } from '#api/machinery/quantity'
import { bareMap } from '#base/bareMap'
import { type KubeletConfig, kubeletDefaults } from '../core/config.ts'
import { type ConfigurationDocument, defaultDocument } from './document.ts'
import { configurationFields } from './fields.ts'

/** Fields that have another name or form inside. */
interface Translation {
  inward(value: unknown): Partial<KubeletConfig>
  outward(config: KubeletConfig): unknown
}

interface CrashLoopBackOff {
  readonly maxContainerRestartPeriod?: string
}

interface MemorySwap {
  readonly swapBehavior?: string
}

const translations: Readonly<Record<string, Translation>> = bareMap({
  containerLogMaxSize: {
    inward: (value) => ({ containerLogMaxSizeBytes: quantityAsNumber(parseQuantity(value as string)) }),
    outward: ({ containerLogMaxSizeBytes: bytes }) => (bytes % 2 ** 20 === 0 ? `${bytes / 2 ** 20}Mi` : String(bytes)),
  },
  podLogsDir: { inward: (value) => ({ podLogsDirectory: value as string }), outward: (config) => config.podLogsDirectory },
  cgroupRoot: { inward: (value) => (value === '' ? {} : { cgroupRoot: value as string }), outward: (config) => config.cgroupRoot },
  crashLoopBackOff: {
    inward: (value) => {
      const { maxContainerRestartPeriod: period } = value as CrashLoopBackOff
      return period === undefined ? {} : { containerRestartMaxBackOffMs: parseDuration(period) ?? 0 }
    },
    outward: (config) => ({ maxContainerRestartPeriod: formatDuration(config.containerRestartMaxBackOffMs) }),
  },
  memorySwap: {
    inward: (value) => ({ swapBehavior: (value as MemorySwap).swapBehavior ?? '' }),
    outward: ({ swapBehavior }) => (swapBehavior === '' ? {} : { swapBehavior }),
  },
  // A file's name there, its content inside.
  resolvConf: { inward: () => ({}), outward: () => '/etc/resolv.conf' },
})

/** What the process around the kubelet takes from the document. */
const usedAround = new Set([
  'kubeAPIQPS',
  'kubeAPIBurst',
  'eventRecordQPS',
  'eventBurst',
  'runtimeRequestTimeout',
  'containerRuntimeEndpoint',
  'imageServiceEndpoint',
  'address',
  'oomScoreAdj',
  'maxOpenFiles',
  'failSwapOn',
  'logging',
])
const usedByServer = new Set([
  'readOnlyPort',
  'tlsCurvePreferences',
  'authentication',
  'authorization',
  'tlsCertFile',
  'tlsPrivateKeyFile',
  'tlsCipherSuites',
  'tlsMinVersion',
  'rotateCertificates',
  'serverTLSBootstrap',
])
const usedByHealth = new Set(['healthzPort', 'healthzBindAddress', 'enableServer', 'mergeDefaultEvictionSettings', 'makeIPTablesUtilChains'])
/** Nothing here depends on them: upstream's own words for the first two are that they have no effect. */
const withoutEffect = new Set([
  'iptablesMasqueradeBit',
  'iptablesDropBit',
  'hairpinMode',
  'contentType',
  'enableContentionProfiling',
  'showHiddenMetricsForVersion',
])

function innerName(name: string): keyof KubeletConfig | undefined {
  const inner = configurationFields[name]?.type === 'duration' ? `${name}Ms` : name
  return Object.hasOwn(kubeletDefaults, inner) ? (inner as keyof KubeletConfig) : undefined
}

/** @param document complete, see defaultDocument */
export function settingsOf(document: ConfigurationDocument): Partial<KubeletConfig> {
  const settings: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(document)) {
    const translation = translations[name]
    const inner = innerName(name)
    if (translation) Object.assign(settings, translation.inward(value))
    else if (inner) settings[inner] = inner.endsWith('Ms') ? parseDuration(value as string) : value
  }
  return { ...settings, ...evictionOf(document) }
}

/** A file that sets any hard threshold turns the others off, unless it sets mergeDefaultEvictionSettings. */
function evictionOf({ evictionHard, mergeDefaultEvictionSettings }: ConfigurationDocument): Partial<KubeletConfig> {
  if (evictionHard === undefined) return {}
  const own = evictionHard as KubeletConfig['evictionHard']
  return { evictionHard: mergeDefaultEvictionSettings === true ? { ...kubeletDefaults.evictionHard, ...own } : own }
}

/** The document as /configz shows it. `around`: what only the process around the kubelet knows. */
export function documentOf(config: KubeletConfig, around: ConfigurationDocument = {}): ConfigurationDocument {
  const document: Record<string, unknown> = bareMap({ ...defaultDocument(around) })
  for (const name of Object.keys(configurationFields)) {
    const translation = translations[name]
    const inner = innerName(name)
    if (translation && !Object.hasOwn(around, name)) document[name] = translation.outward(config)
    else if (inner && !isEmpty(config[inner]) && !isUnsetNumber(name, config[inner]))
      document[name] = inner.endsWith('Ms') ? formatDuration(config[inner] as number) : config[inner]
  }
  return document
}

/** Upstream leaves empty lists, objects and texts out. */
function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)
}

/** Upstream omits a number that is 0 and has no other default. */
function isUnsetNumber(name: string, value: unknown): boolean {
  return value === 0 && configurationFields[name]?.default === undefined
}

/** Returns one sentence for each field that is set but not supported. @param given the document before defaults */
export function unsupported(given: ConfigurationDocument): string[] {
  return Object.entries(given).flatMap(([name, value]) => {
    const isKnown =
      innerName(name) ?? (Object.hasOwn(translations, name) || [usedAround, usedByServer, usedByHealth, withoutEffect].some((names) => names.has(name)))
    if (isKnown || JSON.stringify(value) === JSON.stringify(configurationFields[name]?.default)) return []
    return [`${name} is set, but this kubelet does not support it: it has no effect`]
  })
}
