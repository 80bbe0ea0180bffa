/**
 * The admission chain in upstream's order (L3), one line per plugin, and which of them run.
 * Upstream: pkg/kubeapiserver/options/plugins.go AllOrderedPlugins, DefaultOffAdmissionPlugins (v1.36).
 */
import type { Clock } from '#base/clock'
import { type Metrics, noMetrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { Transport } from '#client/transport'
import type { Authorizer } from '../../authz/authorizer.ts'
import type { RbacAuthorizer } from '../../authz/rbac.ts'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionPlugin } from '../admission.ts'
import { createLookup } from '../lookup.ts'
import { createPodSecurityMetrics } from '../podSecurity/podSecurityMetrics.ts'
import type { PolicyDeps } from '../policy/invocations.ts'
import { type AdmissionSettings, usualAdmission } from '../settings.ts'
import type { WebhookDeps } from '../webhook/consider.ts'
import type { HookWays } from '../webhook/hookIndex.ts'
import { alwaysAdmit } from './alwaysAdmit.ts'
import { alwaysDeny } from './alwaysDeny.ts'
import { alwaysPullImages } from './alwaysPullImages.ts'
import { certificateApproval, certificateSigning, certificateSubjectRestriction, clusterTrustBundleAttest } from './certificates.ts'
import { defaultIngressClass, defaultStorageClass } from './defaultClasses.ts'
import { defaultTolerationSeconds } from './defaultTolerationSeconds.ts'
import { denyServiceExternalIps } from './denyServiceExternalIps.ts'
import { escalation } from './escalation.ts'
import { eventRateLimit } from './eventRateLimit.ts'
import { extendedResourceToleration } from './extendedResourceToleration.ts'
import { jobValidation, podGroupProtection, podGroupWorkloadExists } from './gatedOff.ts'
import { imagePolicyWebhook } from './imagePolicyWebhook.ts'
import { limitPodHardAntiAffinityTopology } from './limitPodHardAntiAffinityTopology.ts'
import { limitRanger } from './limitRanger.ts'
import { mutatingAdmissionPolicy } from './mutatingAdmissionPolicy.ts'
import { mutatingAdmissionWebhook } from './mutatingAdmissionWebhook.ts'
import { namespaceAutoProvision } from './namespaceAutoProvision.ts'
import { namespaceExists } from './namespaceExists.ts'
import { namespaceLifecycle } from './namespaceLifecycle.ts'
import { nodeDeclaredFeatureValidator } from './nodeDeclaredFeatureValidator.ts'
import { nodeRestriction } from './nodeRestriction.ts'
import { ownerReferencesPermissionEnforcement } from './ownerReferencesPermissionEnforcement.ts'
import { persistentVolumeClaimResize } from './persistentVolumeClaimResize.ts'
import { podNodeSelector } from './podNodeSelector.ts'
import { podResizeValidator } from './podResizeValidator.ts'
import { podSecurity } from './podSecurity.ts'
import { podTolerationRestriction } from './podTolerationRestriction.ts'
import { podTopologyLabels } from './podTopologyLabels.ts'
import { priority } from './priority.ts'
import { resourceQuota } from './resourceQuota.ts'
import { runtimeClass } from './runtimeClass.ts'
import { serviceAccount } from './serviceAccount.ts'
import { storageObjectInUseProtection } from './storageObjectInUseProtection.ts'
import { taintNodesByCondition } from './taintNodesByCondition.ts'
import { validatingAdmissionPolicy } from './validatingAdmissionPolicy.ts'
import { validatingAdmissionWebhook } from './validatingAdmissionWebhook.ts'

export interface AdmissionPluginDeps {
  readonly reader: ObjectReader
  readonly random: Random
  readonly clock: Clock
  readonly metrics?: Metrics | undefined
  /** The authorizers that plugins ask; absent: every check is refused. */
  readonly authorizers?: readonly Authorizer[] | undefined
  /** The server's in-process transport; undefined until it is assembled. */
  readonly transport?: (() => Transport | undefined) | undefined
  /** Absent: RBAC is off, so roles need no escalation check. */
  readonly rbac?: RbacAuthorizer | undefined
  /** Absent: configurations of webhooks have no effect. */
  readonly webhooks?: ({ readonly deps: WebhookDeps } & Pick<HookWays, 'resolve' | 'reach'>) | undefined
  /** Absent: policies in CEL have no effect. */
  readonly policies?: PolicyDeps | undefined
}

interface Registration {
  readonly name: string
  readonly default: 'on' | 'off'
  /** Undefined: a dependency of the plugin is missing. */
  create(deps: AdmissionPluginDeps, settings: AdmissionSettings): AdmissionPlugin | undefined
}

const on = (name: string, create: Registration['create']): Registration => ({ name, default: 'on', create })
const off = (name: string, create: Registration['create']): Registration => ({ name, default: 'off', create })
const lookupOf = ({ reader, transport = () => undefined }: AdmissionPluginDeps) => createLookup(reader, transport)
const authorizersOf = ({ authorizers = [] }: AdmissionPluginDeps) => authorizers

export const admissionPlugins: readonly Registration[] = [
  off('AlwaysAdmit', () => alwaysAdmit),
  off('NamespaceAutoProvision', ({ reader, transport = () => undefined }) => namespaceAutoProvision(reader, transport)),
  on('NamespaceLifecycle', (deps) => namespaceLifecycle(lookupOf(deps), deps.clock)),
  off('NamespaceExists', (deps) => namespaceExists(lookupOf(deps))),
  off('LimitPodHardAntiAffinityTopology', () => limitPodHardAntiAffinityTopology),
  on('LimitRanger', ({ reader }) => limitRanger(reader)),
  on('ServiceAccount', (deps) => serviceAccount({ ...deps, lookup: lookupOf(deps) })),
  off('NodeRestriction', (deps) => nodeRestriction(deps.reader, authorizersOf(deps))),
  on('TaintNodesByCondition', () => taintNodesByCondition),
  off('AlwaysPullImages', () => alwaysPullImages),
  off('ImagePolicyWebhook', (deps, { imagePolicy }) => imagePolicy && imagePolicyWebhook(deps, imagePolicy)),
  on('PodSecurity', ({ reader, clock, metrics = noMetrics }, settings) =>
    podSecurity({ reader, clock, metrics: createPodSecurityMetrics(metrics) }, settings.podSecurity),
  ),
  off('PodNodeSelector', (deps, { nodeSelectors }) => podNodeSelector(lookupOf(deps), nodeSelectors)),
  on('Priority', ({ reader }) => priority(reader)),
  on('DefaultTolerationSeconds', (_deps, { tolerationSeconds }) => defaultTolerationSeconds(tolerationSeconds)),
  off('PodTolerationRestriction', (deps, { tolerations }) => podTolerationRestriction(lookupOf(deps), tolerations)),
  off('EventRateLimit', ({ clock }, { eventLimits }) => eventRateLimit(clock, eventLimits)),
  off('ExtendedResourceToleration', () => extendedResourceToleration),
  on('DefaultStorageClass', ({ reader }) => defaultStorageClass(reader)),
  on('StorageObjectInUseProtection', () => storageObjectInUseProtection),
  on('PodGroupProtection', () => podGroupProtection),
  off('OwnerReferencesPermissionEnforcement', (deps) => ownerReferencesPermissionEnforcement(deps.reader, authorizersOf(deps))),
  on('PersistentVolumeClaimResize', ({ reader }) => persistentVolumeClaimResize(reader)),
  on('RuntimeClass', (deps) => runtimeClass(lookupOf(deps))),
  on('CertificateApproval', (deps) => certificateApproval(authorizersOf(deps))),
  on('CertificateSigning', (deps) => certificateSigning(authorizersOf(deps))),
  on('ClusterTrustBundleAttest', (deps) => clusterTrustBundleAttest(authorizersOf(deps))),
  on('CertificateSubjectRestriction', () => certificateSubjectRestriction),
  on('DefaultIngressClass', ({ reader }) => defaultIngressClass(reader)),
  off('DenyServiceExternalIPs', () => denyServiceExternalIps),
  on('PodTopologyLabels', ({ reader }) => podTopologyLabels(reader)),
  on('PodGroupWorkloadExists', () => podGroupWorkloadExists),
  on('NodeDeclaredFeatureValidator', ({ reader }) => nodeDeclaredFeatureValidator(reader)),
  on('JobValidation', () => jobValidation),
  on('PodResizeValidator', ({ reader }) => podResizeValidator(reader)),
  on('MutatingAdmissionPolicy', ({ policies }) => policies && mutatingAdmissionPolicy(policies)),
  on(
    'MutatingAdmissionWebhook',
    ({ webhooks, transport }, { webhookIdentities }) =>
      webhooks && mutatingAdmissionWebhook(webhooks.deps, { ...webhooks, identityOf: webhookIdentities?.mutating, own: transport }),
  ),
  on('ValidatingAdmissionPolicy', ({ policies }) => policies && validatingAdmissionPolicy(policies)),
  on(
    'ValidatingAdmissionWebhook',
    ({ webhooks, transport }, { webhookIdentities }) =>
      webhooks && validatingAdmissionWebhook(webhooks.deps, { ...webhooks, identityOf: webhookIdentities?.validating, own: transport }),
  ),
  // At the end, because it charges the objects that it admits.
  on('ResourceQuota', ({ reader, clock, transport = () => undefined }, { limitedResources }) => resourceQuota({ reader, clock, transport }, limitedResources)),
  off('AlwaysDeny', () => alwaysDeny),
]

/** The plugins that run, in order. The escalation check of roles, which upstream has in its registry, is first: no flag turns it off. */
export function createAdmissionPlugins(deps: AdmissionPluginDeps, settings: AdmissionSettings = usualAdmission): readonly AdmissionPlugin[] {
  const runs = ({ name, default: byDefault }: Registration) => settings.enabled.has(name) || (byDefault === 'on' && !settings.disabled.has(name))
  const plugins = admissionPlugins.filter(runs).flatMap((one) => one.create(deps, settings) ?? [])
  return deps.rbac ? [escalation(deps.rbac, authorizersOf(deps)), ...plugins] : plugins
}
