/**
 * A client certificate that follows its files (L2): read again now and then, and at once when a server does not accept it. While a file cannot be read, or
 * only one of the two is new, the pair of before holds. Upstream: client-go/transport/cert_rotation.go (v1.36).
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Clock } from '#base/clock'
import type { CredentialSource } from './credentials.ts'

const rereadMs = 5 * 60_000

export interface CertificateFiles {
  readonly cert: string
  readonly key: string
}

/** @param first the current contents of the files */
export function certificateFromFiles(
  files: CertificateFiles,
  first: CertificateFiles,
  { clock, readFile }: { readonly clock: Clock; readonly readFile: (path: string) => Promise<Buffer> },
): CredentialSource {
  let current = first
  let readMs = clock.monotonicMs()
  let reading: Promise<void> | undefined
  const read = async () => {
    readMs = clock.monotonicMs()
    try {
      const [cert, key] = await Promise.all([readFile(files.cert), readFile(files.key)])
      const now = { cert: cert.toString(), key: key.toString() }
      if ((now.cert !== current.cert || now.key !== current.key) && belongTogether(now)) current = now
    } catch {
      // The pair of before is better than none.
    }
  }
  const readOnce = async () => {
    reading ??= read().finally(() => {
      reading = undefined
    })
    await reading
  }
  return {
    async get() {
      if (clock.monotonicMs() - readMs >= rereadMs) await readOnce()
      return current
    },
    async refresh(used) {
      if (used === current) await readOnce()
    },
  }
}

function belongTogether({ cert, key }: CertificateFiles): boolean {
  return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))
}
