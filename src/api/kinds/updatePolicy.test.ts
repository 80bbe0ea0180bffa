/** Which kinds a PUT may create, and which it may overwrite without saying what it has seen. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { strategies } from './index.ts'

const namesOf = (wanted: (strategy: (typeof strategies)[number]) => boolean) =>
  strategies
    .filter(wanted)
    .map(({ group, kind }) => (group === '' ? kind : `${kind}.${group}`))
    .sort()

test('API-03 an update of these kinds must name the resourceVersion that it changes', () => {
  assert.deepEqual(
    namesOf(({ allowUnconditionalUpdate }) => allowUnconditionalUpdate === false),
    [
      'APIService.apiregistration.k8s.io',
      'CSIDriver.storage.k8s.io',
      'CSINode.storage.k8s.io',
      'CSIStorageCapacity.storage.k8s.io',
      'ClusterTrustBundle.certificates.k8s.io',
      'CustomResourceDefinition.apiextensions.k8s.io',
      'Lease.coordination.k8s.io',
      'LeaseCandidate.coordination.k8s.io',
      'MutatingAdmissionPolicy.admissionregistration.k8s.io',
      'MutatingAdmissionPolicyBinding.admissionregistration.k8s.io',
      'MutatingWebhookConfiguration.admissionregistration.k8s.io',
      'PodCertificateRequest.certificates.k8s.io',
      'PodDisruptionBudget.policy',
      'RuntimeClass.node.k8s.io',
      'StorageVersion.internal.apiserver.k8s.io',
      'ValidatingAdmissionPolicy.admissionregistration.k8s.io',
      'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io',
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io',
      'VolumeAttachment.storage.k8s.io',
    ],
  )
})

test('API-01 a PUT creates objects of these kinds', () => {
  assert.deepEqual(
    namesOf(({ allowCreateOnUpdate }) => allowCreateOnUpdate === true),
    [
      'ClusterRole.rbac.authorization.k8s.io',
      'ClusterRoleBinding.rbac.authorization.k8s.io',
      'Endpoints',
      'Event',
      'Event.events.k8s.io',
      'Lease.coordination.k8s.io',
      'LeaseCandidate.coordination.k8s.io',
      'LimitRange',
      'Role.rbac.authorization.k8s.io',
      'RoleBinding.rbac.authorization.k8s.io',
      'RuntimeClass.node.k8s.io',
      'Service',
    ],
  )
})
