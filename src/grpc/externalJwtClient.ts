/** Speaks with an external signer of service account tokens over a unix socket (L1). Upstream: pkg/serviceaccount/externaljwt/plugin/plugin.go (v1.36). */
import { externalJwtProto } from './proto/externalJwt.ts'
import { connectUnixService } from './unixService.ts'

export interface ExternalJwtClient {
  /** Base64url, all three: the claims as they stand in the token, and the two parts around them. */
  sign(claims: string): Promise<{ readonly header: string; readonly signature: string }>
  fetchKeys(): Promise<{
    readonly keys: readonly { readonly keyId: string; readonly key: Buffer; readonly excludeFromOidcDiscovery: boolean }[]
    /** Null when the signer does not say it. */
    readonly dataTimestamp: { readonly seconds: number; readonly nanos: number } | null
    readonly refreshHintSeconds: number
  }>
  metadata(): Promise<{ readonly maxTokenExpirationSeconds: number }>
  close(): void
}

const signTimeoutMs = 60_000
const fetchTimeoutMs = 60_000
const metadataTimeoutMs = 10_000

/** @param path of the socket; `@name`: an abstract one */
export function connectExternalJwt(path: string): ExternalJwtClient {
  const target = path.startsWith('@') ? `unix-abstract:${path.slice(1)}` : `unix:${path}`
  const service = connectUnixService(externalJwtProto, 'v1.ExternalJWTSigner', target)
  return {
    sign: (claims) => service.call('Sign', { claims }, signTimeoutMs),
    fetchKeys: () => service.call('FetchKeys', {}, fetchTimeoutMs),
    metadata: () => service.call('Metadata', {}, metadataTimeoutMs),
    close: () => service.close(),
  }
}
