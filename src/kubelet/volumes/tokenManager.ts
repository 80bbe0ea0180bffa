/**
 * Service account tokens for pods (L3): asked for through TokenRequest, kept until four fifths of their life or a day have passed.
 * Upstream: kubelet/token/token_manager.go (v1.36).
 */
import type { TokenRequest } from '#api/gen/types/authentication.v1'
import { parseTime } from '#base/time'
import { serviceAccounts } from '#client/builtIn'
import type { FrozenPod } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'

export interface ServiceAccountToken {
  readonly token: string
  /** When it expires, in the API's notation. */
  readonly expirationTimestamp: string
}

export interface TokenManager {
  token(pod: FrozenPod, audience: string | undefined, expirationSeconds: number): Promise<ServiceAccountToken>
  forget(podUid: string): void
}

interface Cached extends ServiceAccountToken {
  readonly refreshAtMs: number
  readonly expiresAtMs: number
}

const dayMs = 86_400_000

export function createTokenManager(context: Pick<KubeletContext, 'client' | 'clock' | 'random'>): TokenManager {
  const cache = new Map<string, Cached>()
  return {
    token: async (pod, audience, expirationSeconds) => {
      const { namespace = '', name, uid = '' } = pod.metadata
      const account = pod.spec.serviceAccountName ?? 'default'
      const key = JSON.stringify([uid, account, audience ?? '', expirationSeconds])
      const nowMs = context.clock.now()
      const known = cache.get(key)
      if (known && nowMs < known.refreshAtMs) return known
      const request = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        metadata: { name: account, namespace },
        spec: { audiences: audience ? [audience] : [], expirationSeconds, boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid } },
      }
      try {
        const answer = await context.client.of(serviceAccounts).createSubresource<TokenRequest>({ namespace, name: account }, 'token', request)
        const { token = '', expirationTimestamp = '' } = answer.status ?? {}
        const expiresAtMs = parseTime(expirationTimestamp) ?? nowMs + expirationSeconds * 1000
        // A little early and never all at once, so that a node's tokens do not expire together.
        const lifeMs = Math.min(dayMs, (expiresAtMs - nowMs) * 0.8)
        const fetched = { token, expirationTimestamp, expiresAtMs, refreshAtMs: nowMs + lifeMs - context.random.int(10_000) }
        cache.set(key, fetched)
        return fetched
      } catch (error) {
        // A token that still works is better than none.
        if (known && nowMs < known.expiresAtMs) return known
        throw error
      }
    },
    forget: (podUid) => {
      for (const key of cache.keys()) if (key.startsWith(`["${podUid}"`)) cache.delete(key)
    },
  }
}
