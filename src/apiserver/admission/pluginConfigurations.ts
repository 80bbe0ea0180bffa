/**
 * Decodes and validates the configuration files of single admission plugins (L3).
 * Upstream: plugin/pkg/admission/{eventratelimit,podtolerationrestriction}/apis, podnodeselector/admission.go, imagepolicy/config.go (v1.36).
 */
import path from 'node:path'
import { decodeConfiguration } from '#api/configuration/decode'
import { anything, integer, kind, list, struct, text } from '#api/configuration/schemas'
import type { Toleration } from '#api/gen/types/core.v1'
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'
import { parseYaml } from '#api/machinery/yaml'
import { type EventLimit, eventLimitTypes } from './plugins/eventRateLimit.ts'
import type { ImagePolicySettings } from './plugins/imagePolicyWebhook.ts'
import type { NodeSelectors } from './plugins/podNodeSelector.ts'
import type { TolerationSettings } from './plugins/podTolerationRestriction.ts'

const eventKinds = [
  {
    kind: 'Configuration',
    apiVersions: ['eventratelimit.admission.k8s.io/v1alpha1'],
    schema: kind('Configuration', { limits: list(struct('Limit', { type: text, qps: integer, burst: integer, cacheSize: integer })) }),
  },
]
const tolerationKinds = [
  {
    kind: 'Configuration',
    apiVersions: ['podtolerationrestriction.admission.k8s.io/v1alpha1'],
    schema: kind('Configuration', { default: list(anything), whitelist: list(anything) }),
  },
]

/** @throws Error with every fault */
export function eventLimits(content: string | undefined): readonly EventLimit[] {
  const { limits = [] } = (content === undefined ? {} : decodeConfiguration(content, eventKinds).value) as { readonly limits?: readonly Partial<EventLimit>[] }
  const at = FieldPath.of('limits')
  const faults = limits.length === 0 ? [fieldError.invalid(at, limits, 'must not be empty')] : []
  for (const [index, { type, qps = 0, burst = 0, cacheSize = 0 }] of limits.entries()) {
    const one = at.index(index)
    if (!eventLimitTypes.some((known) => known === type)) faults.push(fieldError.notSupported(one.child('type'), type ?? '', eventLimitTypes))
    if (burst <= 0) faults.push(fieldError.invalid(one.child('burst'), burst, 'must be positive'))
    if (qps <= 0) faults.push(fieldError.invalid(one.child('qps'), qps, 'must be positive'))
    if (type !== 'Server' && cacheSize < 0) faults.push(fieldError.invalid(one.child('cacheSize'), cacheSize, 'must not be negative'))
  }
  throwAll(faults)
  return limits.map(({ type = 'Server', qps = 0, burst = 0, cacheSize = 0 }) => ({ type, qps, burst, cacheSize }))
}

/** @throws Error with every fault of the decoder */
export function tolerationSettings(content: string): TolerationSettings {
  const { default: byDefault = [], whitelist = [] } = decodeConfiguration(content, tolerationKinds).value as {
    readonly default?: readonly Toleration[]
    readonly whitelist?: readonly Toleration[]
  }
  return { default: byDefault, whitelist }
}

/** The file has no apiVersion and kind; absent members are left out. */
export function nodeSelectors(content: string): NodeSelectors {
  const { podNodeSelectorPluginConfig: selectors = {} } = Object(parseYaml(content)) as { readonly podNodeSelectorPluginConfig?: NodeSelectors }
  return Object.fromEntries(Object.entries(Object(selectors)).map(([name, selector]) => [name, String(selector)]))
}

const configurationOf = (name: string) => ({ kind: name, apiVersions: ['apiserver.config.k8s.io/v1'] })
const webhookAdmissionKinds = [
  {
    ...configurationOf('WebhookAdmissionConfiguration'),
    schema: kind('WebhookAdmissionConfiguration', { kubeConfigFile: text, staticManifestsDir: text }),
  },
]

/** The kubeconfig with the server's credentials for webhooks; empty: there is none. @throws Error */
export function webhookAdmissionFile(content: string): string {
  const { kubeConfigFile = '', staticManifestsDir } = decodeConfiguration(content, webhookAdmissionKinds).value as ManifestsDir & {
    readonly kubeConfigFile?: string
  }
  const faults = kubeConfigFile === '' || path.isAbsolute(kubeConfigFile) ? [] : [notAbsolute(kubeConfigFile)]
  throwAll([...faults, ...manifestsFaults(staticManifestsDir)].slice(0, 1))
  return kubeConfigFile
}

/** The configuration of policies in CEL has only what an alpha feature reads. @throws Error */
export function checkPolicyFile(content: string, name: string): void {
  const kinds = [{ ...configurationOf(name), schema: kind(name, { staticManifestsDir: text }) }]
  const { staticManifestsDir } = decodeConfiguration(content, kinds).value as ManifestsDir
  throwAll(manifestsFaults(staticManifestsDir))
}

interface ManifestsDir {
  readonly staticManifestsDir?: string
}

const notAbsolute = (file: string) => fieldError.invalid(FieldPath.of('kubeConfigFile'), file, 'must be an absolute file path')

function manifestsFaults(folder = ''): FieldError[] {
  const why = 'staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled'
  return folder === '' ? [] : [fieldError.forbidden(FieldPath.of('staticManifestsDir'), why)]
}

export type ImagePolicyFile = Omit<ImagePolicySettings, 'transport'> & { readonly kubeConfigFile: string }

const minuteMs = 60_000

/** @throws Error for a duration out of range */
export function imagePolicyFile(content: string): ImagePolicyFile {
  const { imagePolicy = {} } = Object(parseYaml(content)) as { readonly imagePolicy?: Readonly<Record<string, unknown>> }
  return {
    kubeConfigFile: String(imagePolicy.kubeConfigFile ?? ''),
    retryBackoffMs: durationOf(imagePolicy.retryBackoff, { unitMs: 1, min: 1, max: 5 * minuteMs, byDefault: 500, shown: ['1ms', '5m0s'] }),
    allowTtlMs: durationOf(imagePolicy.allowTTL, { unitMs: 1000, min: 1000, max: 30 * minuteMs, byDefault: 5 * minuteMs, shown: ['1s', '30m0s'] }),
    denyTtlMs: durationOf(imagePolicy.denyTTL, { unitMs: 1000, min: 1000, max: 30 * minuteMs, byDefault: 30_000, shown: ['1s', '30m0s'] }),
    defaultAllow: imagePolicy.defaultAllow === true,
  }
}

interface Range {
  readonly unitMs: number
  readonly min: number
  readonly max: number
  readonly byDefault: number
  readonly shown: readonly [string, string]
}

/** 0 is the default, -1 is none. */
function durationOf(given: unknown, { unitMs, min, max, byDefault, shown }: Range): number {
  const value = Number(given ?? 0)
  if (value === 0) return byDefault
  if (value === -1) return 0
  const ms = value * unitMs
  if (ms >= min && ms <= max) return ms
  throw new Error(`valid value is between ${shown[0]} and ${shown[1]}, got ${value}${unitMs === 1 ? 'ms' : 's'}`)
}

function throwAll(faults: readonly FieldError[]): void {
  const texts = faults.map(({ field, body }) => `${field}: ${body}`)
  if (texts.length > 0) throw new Error(texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`)
}
