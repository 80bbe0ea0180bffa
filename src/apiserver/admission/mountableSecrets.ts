/**
 * Limits a pod's secrets to those of its service account (L3), if the account is annotated to enforce that.
 * Upstream: plugin/pkg/admission/serviceaccount limitSecretReferences, limitEphemeralContainerSecretReferences (v1.36).
 */
import type { Container, EphemeralContainer, Pod, ServiceAccount } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'

const annotation = 'kubernetes.io/enforce-mountable-secrets'
const truths: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])

type AnyContainer = Frozen<Container> | Frozen<EphemeralContainer>

/** The error about the pod's secrets; undefined: none. */
export function secretFault({ spec }: Frozen<Pod>, account: Frozen<ServiceAccount>): string | undefined {
  const mountable = mountableBy(account)
  if (!mountable) return undefined
  for (const { secret } of spec.volumes ?? []) {
    if (secret && !mountable.has(secret.secretName)) return `volume with secret.secretName="${secret.secretName ?? ''}" ${because(account)}`
  }
  const fault = variableFault('init container', spec.initContainers, mountable, account) ?? variableFault('container', spec.containers, mountable, account)
  if (fault) return fault
  const pulling = new Set((account.imagePullSecrets ?? []).map(({ name }) => name))
  for (const [index, { name }] of (spec.imagePullSecrets ?? []).entries()) {
    if (!pulling.has(name))
      return `imagePullSecrets[${index}].name="${name}" is not allowed because service account ${account.metadata.name} does not reference that imagePullSecret`
  }
  return undefined
}

/** The error about the secrets of ephemeral containers; undefined: none. */
export function ephemeralSecretFault({ spec }: Frozen<Pod>, account: Frozen<ServiceAccount>): string | undefined {
  const mountable = mountableBy(account)
  return mountable && variableFault('ephemeral container', spec.ephemeralContainers, mountable, account)
}

const because = ({ metadata }: Frozen<ServiceAccount>) => `is not allowed because service account ${metadata.name} does not reference that secret`

/** Undefined: the account does not enforce it. */
function mountableBy({ metadata, secrets = [] }: Frozen<ServiceAccount>): ReadonlySet<string | undefined> | undefined {
  return truths.has(metadata.annotations?.[annotation] ?? '') ? new Set(secrets.map(({ name }) => name)) : undefined
}

function variableFault(
  what: string,
  containers: readonly AnyContainer[] = [],
  mountable: ReadonlySet<string | undefined>,
  account: Frozen<ServiceAccount>,
): string | undefined {
  for (const container of containers) {
    for (const { name, valueFrom } of container.env ?? []) {
      const key = valueFrom?.secretKeyRef
      if (key && !mountable.has(key.name))
        return `${what} ${container.name} with envVar ${name} referencing secret.secretName="${key.name}" ${because(account)}`
    }
    for (const { secretRef } of container.envFrom ?? []) {
      if (secretRef && !mountable.has(secretRef.name))
        return `${what} ${container.name} with envFrom referencing secret.secretName="${secretRef.name}" ${because(account)}`
    }
  }
  return undefined
}
