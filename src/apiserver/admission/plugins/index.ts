/**
 * The admission chain in upstream's order (L3), as far as it is built; NodeRestriction is on, as kubeadm has it.
 * Upstream: pkg/kubeapiserver/options/plugins.go AllOrderedPlugins.
 */
import type { Clock } from '#base/clock'
import { type Metrics, noMetrics } from '#base/metrics'
import type { Random } from '#base/random'
import type { Authorizer } from '../../authz/authorizer.ts'
import type { RbacAuthorizer } from '../../authz/rbac.ts'
import type { ResolveService } from '../../webhookTarget.ts'
import type { AdmissionPlugin, ObjectReader } from '../admission.ts'
import { defaultPodSecurity } from '../podSecurity/configuration.ts'
import { createPodSecurityMetrics } from '../podSecurity/podSecurityMetrics.ts'
import type { PolicyDeps } from '../policy/invocations.ts'
import type { WebhookDeps } from '../webhook/consider.ts'
import { defaultIngressClass, defaultStorageClass } from './defaultClasses.ts'
import { defaultTolerationSeconds } from './defaultTolerationSeconds.ts'
import { escalation } from './escalation.ts'
import { limitRanger } from './limitRanger.ts'
import { mutatingAdmissionPolicy } from './mutatingAdmissionPolicy.ts'
import { mutatingAdmissionWebhook } from './mutatingAdmissionWebhook.ts'
import { namespaceLifecycle } from './namespaceLifecycle.ts'
import { nodeRestriction } from './nodeRestriction.ts'
import { podSecurity } from './podSecurity.ts'
import { priority } from './priority.ts'
import { resourceQuota } from './resourceQuota.ts'
import { serviceAccount } from './serviceAccount.ts'
import { taintNodesByCondition } from './taintNodesByCondition.ts'
import { validatingAdmissionPolicy } from './validatingAdmissionPolicy.ts'
import { validatingAdmissionWebhook } from './validatingAdmissionWebhook.ts'

export interface AdmissionPluginDeps {
  readonly reader: ObjectReader
  readonly random: Random
  /** Absent: quotas are not enforced, nor the Pod Security Standards. */
  readonly clock?: Clock | undefined
  readonly metrics?: Metrics | undefined
  /** Absent: authorization is not RBAC's, and roles grant nothing that needs guarding. */
  readonly rbac?: { readonly authorizer: RbacAuthorizer; readonly authorizers: readonly Authorizer[] } | undefined
  /** Absent: configurations of webhooks have no effect. */
  readonly webhooks?: { readonly deps: WebhookDeps; readonly resolve: ResolveService } | undefined
  /** Absent: policies in CEL have no effect. */
  readonly policies?: PolicyDeps | undefined
}

export function createAdmissionPlugins({
  reader,
  random,
  clock,
  metrics = noMetrics,
  rbac,
  webhooks,
  policies,
}: AdmissionPluginDeps): readonly AdmissionPlugin[] {
  return [
    namespaceLifecycle(reader),
    limitRanger(reader),
    serviceAccount(reader, random),
    nodeRestriction(reader),
    taintNodesByCondition,
    ...(clock ? [podSecurity({ reader, clock, metrics: createPodSecurityMetrics(metrics) }, defaultPodSecurity)] : []),
    priority(reader),
    defaultTolerationSeconds,
    defaultStorageClass(reader),
    defaultIngressClass(reader),
    ...(policies ? [mutatingAdmissionPolicy(policies)] : []),
    ...(webhooks ? [mutatingAdmissionWebhook(webhooks.deps, webhooks.resolve)] : []),
    ...(rbac ? [escalation(rbac.authorizer, rbac.authorizers)] : []),
    ...(policies ? [validatingAdmissionPolicy(policies)] : []),
    ...(webhooks ? [validatingAdmissionWebhook(webhooks.deps, webhooks.resolve)] : []),
    // Last: what it lets pass is counted.
    ...(clock ? [resourceQuota(reader, clock)] : []),
  ]
}
