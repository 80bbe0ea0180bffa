/** Bootstrap tokens and the Secrets that hold them (L4). Upstream: k8s.io/cluster-bootstrap/token (v1.36). */
import { randomInt } from 'node:crypto'
import { formatTime } from '#base/time'

export const secretsPath = '/api/v1/namespaces/kube-system/secrets'
export const tokenPrefix = 'bootstrap-token-'
export const tokenType = 'bootstrap.kubernetes.io/token'

export interface BootstrapToken {
  readonly id: string
  readonly secret: string
}

export interface TokenUse {
  /** Undefined: it does not expire. */
  readonly expiresMs: number | undefined
  readonly usages: readonly ('authentication' | 'signing')[]
  readonly group?: string
  readonly description?: string | undefined
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

function random(length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')
}

export function bootstrapToken(): BootstrapToken {
  return { id: random(6), secret: random(16) }
}

export function bootstrapTokenSecret({ id, secret }: BootstrapToken, { expiresMs, usages, group, description }: TokenUse): object {
  const stringData = {
    'token-id': id,
    'token-secret': secret,
    ...Object.fromEntries(usages.map((usage) => [`usage-bootstrap-${usage}`, 'true'])),
    ...(group === undefined ? {} : { 'auth-extra-groups': group }),
    ...(expiresMs === undefined ? {} : { expiration: formatTime(expiresMs) }),
    ...(description === undefined ? {} : { description }),
  }
  return { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'kube-system', name: tokenPrefix + id }, type: tokenType, stringData }
}
