/**
 * Where traces go and how many there are (L5), as the file of --tracing-config-file and the kubelet's `tracing` say.
 * Upstream: component-base/tracing/api/v1, apiserver/pkg/server/options/tracing.go (v1.36). Beyond upstream, an endpoint may be http:// or https://.
 */
import { decodeConfiguration } from '#api/configuration/decode'
import { integer, kind, text } from '#api/configuration/schemas'

export interface TracingSettings {
  /** host:port, unix:path or unix-abstract:name for gRPC; a URL for HTTP. Absent: localhost:4317. */
  readonly endpoint?: string | undefined
  readonly samplingRatePerMillion?: number | undefined
}

const kinds = [
  {
    kind: 'TracingConfiguration',
    apiVersions: ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`),
    schema: kind('TracingConfiguration', { endpoint: text, samplingRatePerMillion: integer }),
  },
]

/** @throws Error with every fault of the file */
export function readTracingConfiguration(content: string): TracingSettings {
  const { value } = decodeConfiguration(content, kinds)
  const settings = value as TracingSettings
  const faults = tracingFaults(settings, '')
  if (faults.length > 0) throw new Error(faults.join(', '))
  return settings
}

/** The faults in upstream's words. @param path before the field's name: empty, or with a dot */
export function tracingFaults({ endpoint, samplingRatePerMillion: rate = 0 }: TracingSettings, path: string): string[] {
  const wrongRate = (what: string) => `${path}samplingRatePerMillion: Invalid value: ${rate}: ${what}`
  return [
    ...(rate < 0 ? [wrongRate('sampling rate must be positive')] : []),
    ...(rate > 1_000_000 ? [wrongRate('sampling rate per million must be less than or equal to one million')] : []),
    ...(endpoint === undefined ? [] : endpointFaults(endpoint, `${path}endpoint`)),
  ]
}

const schemes: ReadonlySet<string> = new Set(['dns', 'unix', 'unix-abstract', 'http', 'https'])

function endpointFaults(endpoint: string, path: string): string[] {
  const scheme = /^([^/]*?):\/\//.exec(endpoint)?.[1]
  if (scheme === undefined || schemes.has(scheme)) return []
  return [`${path}: Invalid value: "${endpoint}": unsupported scheme: ${scheme}.  Options are none, dns, unix, unix-abstract, http, or https`]
}
