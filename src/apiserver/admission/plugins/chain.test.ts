/** ADM-01: the chain's order, and which of it runs. The lists are upstream's AllOrderedPlugins and the default ones of v1.36. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { VirtualClock } from '#base/virtualClock'
import { noAdmissionFlags } from '../settings.ts'
import { admissionPlugins, createAdmissionPlugins } from './index.ts'

const chain =
  'AlwaysAdmit* NamespaceAutoProvision* NamespaceLifecycle NamespaceExists* LimitPodHardAntiAffinityTopology* LimitRanger ServiceAccount NodeRestriction* TaintNodesByCondition AlwaysPullImages* ImagePolicyWebhook* PodSecurity PodNodeSelector* Priority DefaultTolerationSeconds PodTolerationRestriction* EventRateLimit* ExtendedResourceToleration* DefaultStorageClass StorageObjectInUseProtection PodGroupProtection OwnerReferencesPermissionEnforcement* PersistentVolumeClaimResize RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest CertificateSubjectRestriction DefaultIngressClass DenyServiceExternalIPs* PodTopologyLabels PodGroupWorkloadExists NodeDeclaredFeatureValidator JobValidation PodResizeValidator MutatingAdmissionPolicy MutatingAdmissionWebhook ValidatingAdmissionPolicy ValidatingAdmissionWebhook ResourceQuota AlwaysDeny*'

test('ADM-01 the chain is upstream’s, 27 of 41 on by default', () => {
  assert.equal(admissionPlugins.map((plugin) => `${plugin.name}${plugin.default === 'off' ? '*' : ''}`).join(' '), chain)
  assert.equal(admissionPlugins.filter((plugin) => plugin.default === 'on').length, 27)
})

test('ADM-01 what runs has its name and stands in order; flags add and take away', () => {
  const reader = { get: () => undefined, list: () => [], onChange: () => () => {} }
  const named = (enabled: readonly string[], disabled: readonly string[] = []) =>
    createAdmissionPlugins(
      { reader, random: seededRandom(1), clock: new VirtualClock() },
      { ...noAdmissionFlags, enabled: new Set(enabled), disabled: new Set(disabled) },
    ).map(({ name }) => name)
  // Policies, webhooks and the image policy need more than a reader.
  const absent = /Policy$|Webhook$/
  const order = chain.split(' ').filter((name) => !absent.test(name.replace('*', '')))
  const all = order.map((name) => name.replace('*', ''))
  assert.deepEqual(named(all), all)
  assert.deepEqual(
    named([]),
    order.filter((name) => !name.endsWith('*')),
  )
  assert.deepEqual(
    named(['AlwaysPullImages'], ['PodSecurity']),
    all.filter((name) => name === 'AlwaysPullImages' || (named([]).includes(name) && name !== 'PodSecurity')),
  )
})
