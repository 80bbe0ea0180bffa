/**
 * Gives every pod an identity: the default ServiceAccount where none is named, and the projected token volume of its containers (L3).
 * Upstream: plugin/pkg/admission/serviceaccount.
 */
import type { Container, Pod, ServiceAccount, Volume } from '#api/gen/types/core.v1'
import { podSecretNames } from '#api/helpers/objectReferences'
import { isMirrorPod } from '#api/helpers/pods'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { type Random, randomName } from '#base/random'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { isResource, isSubresource, objectOf, plainError, refuse } from '../attributes.ts'
import { find, type Lookup } from '../lookup.ts'
import { ephemeralSecretFault, secretFault } from '../mountableSecrets.ts'

const accounts = { group: '', version: 'v1', resource: 'serviceaccounts', namespaced: true }
const tokenMountPath = '/var/run/secrets/kubernetes.io/serviceaccount'
/** An hour and the seven seconds by which upstream recognises these tokens. */
const tokenSeconds = 3607

/** The controller creates this account after the namespace: earlier requests wait for a short time. */
const defaultName = 'default'
const attemptsForDefault = 10

export interface ServiceAccountDeps {
  readonly lookup: Lookup
  readonly random: Random
  readonly clock: Clock
}

export function serviceAccount(deps: ServiceAccountDeps): AdmissionPlugin {
  const withAccount = (attributes: AdmissionAttributes, go: (account: Frozen<ServiceAccount>) => void): Promise<void> | void => {
    const name = objectOf<Pod>(attributes).spec.serviceAccountName ?? ''
    const known = deps.lookup.cached<ServiceAccount>(accounts, attributes.namespace, name)
    return known ? go(known) : awaitAccount(deps, attributes, name).then(go)
  }
  return {
    name: 'ServiceAccount',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    admit: (attributes) => {
      if (!isNewPod(attributes)) return undefined
      const pod = objectOf<Pod>(attributes)
      // A mirror pod describes a pod that the kubelet already runs, so it is not changed.
      if (isMirrorPod(pod)) return checkMirrorPod(attributes, pod)
      pod.spec.serviceAccountName ||= defaultName
      // Also set the deprecated field, as its defaulting ran before: otherwise every later update would seem to add it.
      pod.spec.serviceAccount = pod.spec.serviceAccountName
      return withAccount(attributes, (account) => {
        if (shouldMount(pod, account)) mountToken(pod, deps.random)
        const secrets = account.imagePullSecrets ?? []
        if ((pod.spec.imagePullSecrets ?? []).length === 0 && secrets.length > 0) pod.spec.imagePullSecrets = secrets.map(({ name }) => ({ name }))
        checkSecrets(attributes, account)
      })
    },
    validate: (attributes) => {
      const isDebugging = attributes.operation === 'UPDATE' && isSubresource(attributes, '', 'pods', 'ephemeralcontainers')
      if (!isDebugging && !isNewPod(attributes)) return undefined
      const pod = objectOf<Pod>(attributes)
      if (!isDebugging && isMirrorPod(pod)) return checkMirrorPod(attributes, pod)
      if (!pod.spec.serviceAccountName) throw refuse(attributes, `no service account specified for pod ${attributes.namespace}/${pod.metadata.name ?? ''}`)
      return withAccount(attributes, (account) => (isDebugging ? checkEphemeralSecrets(pod, account) : checkSecrets(attributes, account)))
    },
  }
}

function checkSecrets(attributes: AdmissionAttributes, account: Frozen<ServiceAccount>): void {
  const fault = secretFault(objectOf<Pod>(attributes), account)
  if (fault !== undefined) throw refuse(attributes, fault)
}

function checkEphemeralSecrets(pod: Pod, account: Frozen<ServiceAccount>): void {
  const fault = ephemeralSecretFault(pod, account)
  if (fault !== undefined) throw plainError(fault)
}

/** Only new pods: later these fields cannot be changed. */
function isNewPod(attributes: AdmissionAttributes): boolean {
  return attributes.operation === 'CREATE' && isResource(attributes, '', 'pods')
}

async function awaitAccount({ lookup, random, clock }: ServiceAccountDeps, attributes: AdmissionAttributes, name: string): Promise<Frozen<ServiceAccount>> {
  const { namespace } = attributes
  const attempts = name === defaultName ? attemptsForDefault : 1
  const pauseMs = 100 + random.int(100)
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await clock.sleep(pauseMs)
    const found = await find<ServiceAccount>(lookup, accounts, namespace, name)
    if (found) return found
  }
  throw refuse(attributes, `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`)
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
