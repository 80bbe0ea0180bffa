/**
 * Gives every pod an identity: the default ServiceAccount where none is named, and the projected token volume of its containers (L3).
 * Upstream: plugin/pkg/admission/serviceaccount.
 */
import type { Container, Pod, ServiceAccount, Volume } from '#api/gen/types/core.v1'
import { podSecretNames } from '#api/helpers/objectReferences'
import { isMirrorPod } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import { StatusError } from '#api/machinery/status'
import { type Random, randomName } from '#base/random'
import type { AdmissionAttributes, AdmissionPlugin, ObjectReader } from '../admission.ts'
import { isResource, isSubresource, objectOf, refuse } from '../attributes.ts'
import { ephemeralSecretFault, secretFault } from '../mountableSecrets.ts'

const tokenMountPath = '/var/run/secrets/kubernetes.io/serviceaccount'
/** An hour and the seven seconds by which upstream recognises these tokens. */
const tokenSeconds = 3607

export function serviceAccount(reader: ObjectReader, random: Random): AdmissionPlugin {
  return {
    name: 'ServiceAccount',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    admit: (attributes) => {
      if (!isNewPod(attributes)) return
      const pod = objectOf<Pod>(attributes)
      // A mirror pod shows what the kubelet already runs: nothing can be added to it.
      if (isMirrorPod(pod)) return checkMirrorPod(attributes, pod)
      pod.spec.serviceAccountName ||= 'default'
      // The deprecated twin was defaulted before; left out, every later update would seem to add it.
      pod.spec.serviceAccount = pod.spec.serviceAccountName
      const account = accountOf(attributes, reader, pod)
      if (shouldMount(pod, account)) mountToken(pod, random)
      const secrets = account.imagePullSecrets ?? []
      if ((pod.spec.imagePullSecrets ?? []).length === 0 && secrets.length > 0) pod.spec.imagePullSecrets = secrets.map(({ name }) => ({ name }))
    },
    validate: (attributes) => {
      const isDebugging = attributes.operation === 'UPDATE' && isSubresource(attributes, '', 'pods', 'ephemeralcontainers')
      if (!isDebugging && !isNewPod(attributes)) return
      const pod = objectOf<Pod>(attributes)
      if (!isDebugging && isMirrorPod(pod)) return checkMirrorPod(attributes, pod)
      if (!pod.spec.serviceAccountName) throw refuse(attributes, `no service account specified for pod ${attributes.namespace}/${pod.metadata.name ?? ''}`)
      const account = accountOf(attributes, reader, pod)
      if (isDebugging) {
        const fault = ephemeralSecretFault(pod, account)
        // Upstream's plugin makes no refusal of it: the code is that of any other error.
        if (fault !== undefined) throw new StatusError('', fault, { code: 500 })
        return
      }
      const why = secretFault(pod, account)
      if (why !== undefined) throw refuse(attributes, why)
    },
  }
}

/** Later nothing of this can be changed. */
function isNewPod(attributes: AdmissionAttributes): boolean {
  return attributes.operation === 'CREATE' && isResource(attributes, '', 'pods')
}

function accountOf(attributes: AdmissionAttributes, reader: ObjectReader, pod: Pod): Frozen<ServiceAccount> {
  const name = pod.spec.serviceAccountName || 'default'
  const found = reader.get<ServiceAccount>({ group: '', resource: 'serviceaccounts' }, attributes.namespace, name)
  if (!found) throw refuse(attributes, `error looking up service account ${attributes.namespace}/${name}: serviceaccount "${name}" not found`)
  return found
}

function checkMirrorPod(attributes: AdmissionAttributes, pod: Pod): void {
  if (pod.spec.serviceAccountName) throw refuse(attributes, 'a mirror pod may not reference service accounts')
  if (podSecretNames(pod).length > 0) throw refuse(attributes, 'a mirror pod may not reference secrets')
  const projectsToken = pod.spec.volumes?.some((volume) => volume.projected?.sources?.some((source) => source.serviceAccountToken))
  if (projectsToken) throw refuse(attributes, 'a mirror pod may not use ServiceAccountToken volume projections')
}

function shouldMount(pod: Pod, account: Frozen<ServiceAccount>): boolean {
  return pod.spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true
}

function mountToken(pod: Pod, random: Random): void {
  const { spec } = pod
  const existing = spec.volumes?.find((volume) => volume.name.startsWith('kube-api-access-'))?.name
  const name = existing ?? `kube-api-access-${randomName(random)}`
  const containers: Container[] = [...(spec.initContainers ?? []), ...spec.containers]
  const needing = containers.filter((container) => !container.volumeMounts?.some((mount) => mount.mountPath === tokenMountPath))
  if (needing.length === 0) return
  for (const container of needing) container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath: tokenMountPath }]
  if (!existing) spec.volumes = [...(spec.volumes ?? []), tokenVolume(name)]
}

function tokenVolume(name: string): Volume {
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: tokenSeconds, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }] } },
      ],
      defaultMode: 0o644,
    },
  }
}
