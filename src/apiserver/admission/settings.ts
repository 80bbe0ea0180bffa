/** The admission plugins of a server and their configurations (L3). Upstream: pkg/kubeapiserver/options/{admission,plugins}.go (v1.36). */
import { type TolerationSeconds, usualTolerationSeconds } from './plugins/defaultTolerationSeconds.ts'
import type { EventLimit } from './plugins/eventRateLimit.ts'
import type { ImagePolicySettings } from './plugins/imagePolicyWebhook.ts'
import type { NodeSelectors } from './plugins/podNodeSelector.ts'
import type { TolerationSettings } from './plugins/podTolerationRestriction.ts'
import { defaultPodSecurity, type PodSecurityConfiguration } from './podSecurity/configuration.ts'
import type { LimitedResource } from './quota/limitedResources.ts'
import type { IdentityOf } from './webhook/identities.ts'

export interface AdmissionSettings {
  /** Plugins that are on in addition to the default ones. */
  readonly enabled: ReadonlySet<string>
  /** Default plugins that are off. */
  readonly disabled: ReadonlySet<string>
  readonly podSecurity: PodSecurityConfiguration
  readonly nodeSelectors: NodeSelectors
  readonly tolerations: TolerationSettings
  /** Default tolerationSeconds of pods for NotReady and unreachable nodes. */
  readonly tolerationSeconds: TolerationSeconds
  readonly eventLimits: readonly EventLimit[]
  /** Resources that may be used only under a quota. */
  readonly limitedResources: readonly LimitedResource[]
  /** The server's credentials for webhooks; absent: none. */
  readonly webhookIdentities?: { readonly mutating?: IdentityOf | undefined; readonly validating?: IdentityOf | undefined } | undefined
  /** Absent: ImagePolicyWebhook cannot be enabled. */
  readonly imagePolicy?: ImagePolicySettings | undefined
}

/** The settings of a server without flags. */
export const noAdmissionFlags: AdmissionSettings = {
  enabled: new Set(),
  disabled: new Set(),
  podSecurity: defaultPodSecurity,
  nodeSelectors: {},
  tolerations: { default: [], whitelist: [] },
  tolerationSeconds: usualTolerationSeconds,
  eventLimits: [],
  limitedResources: [],
}

/** The settings of a server without flags, as in a local cluster: kubelets may only change their own node, and no finalizer waits for a missing controller. */
export const usualAdmission: AdmissionSettings = {
  ...noAdmissionFlags,
  enabled: new Set(['NodeRestriction']),
  disabled: new Set(['StorageObjectInUseProtection']),
}
