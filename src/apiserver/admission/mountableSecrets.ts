/**
 * Which secrets a pod may use (L3): those that its service account names, where the account is annotated to enforce that.
 * Upstream: plugin/pkg/admission/serviceaccount limitSecretReferences (v1.36).
 */
import type { Pod, ServiceAccount } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

const annotation = 'kubernetes.io/enforce-mountable-secrets'
const truths: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])

/** What the account has against the pod's secrets; undefined: nothing. */
export function secretFault({ spec }: Frozen<Pod>, account: Frozen<ServiceAccount>): string | undefined {
  if (!truths.has(account.metadata.annotations?.[annotation] ?? '')) return undefined
  const mountable = new Set((account.secrets ?? []).map(({ name }) => name))
  const because = `is not allowed because service account ${account.metadata.name} does not reference that secret`
  for (const { secret } of spec.volumes ?? []) {
    if (secret && !mountable.has(secret.secretName)) return `volume with secret.secretName="${secret.secretName ?? ''}" ${because}`
  }
  const containers = [
    ...(spec.initContainers ?? []).map((container) => ({ container, what: 'init container' })),
    ...spec.containers.map((container) => ({ container, what: 'container' })),
  ]
  for (const { container, what } of containers) {
    for (const { name, valueFrom } of container.env ?? []) {
      const key = valueFrom?.secretKeyRef
      if (key && !mountable.has(key.name)) return `${what} ${container.name} with envVar ${name} referencing secret.secretName="${key.name}" ${because}`
    }
    for (const { secretRef } of container.envFrom ?? []) {
      if (secretRef && !mountable.has(secretRef.name))
        return `${what} ${container.name} with envFrom referencing secret.secretName="${secretRef.name}" ${because}`
    }
  }
  const pulling = new Set((account.imagePullSecrets ?? []).map(({ name }) => name))
  for (const [index, { name }] of (spec.imagePullSecrets ?? []).entries()) {
    if (!pulling.has(name))
      return `imagePullSecrets[${index}].name="${name}" is not allowed because service account ${account.metadata.name} does not reference that imagePullSecret`
  }
  return undefined
}
