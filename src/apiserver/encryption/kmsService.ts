/** The interface of a key management service (L3); the composition root implements it over gRPC. Upstream: k8s.io/kms/pkg/service (v1.36). */
import type { Annotations } from './encryptedObject.ts'

export interface KmsStatus {
  readonly version: string
  /** `ok`, or an error text. */
  readonly healthz: string
  /** The id of the service's current key. */
  readonly keyId: string
}

/** Calls reject with an Error that names, as `grpcStatus`, the status in Go's spelling: `Unavailable`. */
export interface KmsService {
  status(): Promise<KmsStatus>
  encrypt(uid: string, plaintext: Uint8Array): Promise<{ readonly ciphertext: Uint8Array; readonly keyId: string; readonly annotations: Annotations }>
  decrypt(uid: string, request: { readonly ciphertext: Uint8Array; readonly keyId: string; readonly annotations: Annotations }): Promise<Uint8Array>
  close(): void
}

/** @param endpoint `unix:///path`, or `unix:///@name` for an abstract socket */
export type ConnectKms = (endpoint: string, timeoutMs: number) => KmsService
