/**
 * Which certificate a TLS server shows (L0, pure). Node adds the certificate of a server name to the default one instead of replacing it, unless both have the
 * same kind of key, and OpenSSL chooses between them by its preferences. These prefer every kind of key to that of the default certificate.
 */

/** OpenSSL's names of signature algorithms, by the kind of key. */
const algorithms: readonly (readonly [kind: string, names: readonly string[]])[] = [
  ['ec', ['ecdsa_secp256r1_sha256', 'ecdsa_secp384r1_sha384', 'ecdsa_secp521r1_sha512']],
  ['ed25519', ['ed25519']],
  ['ed448', ['ed448']],
  ['rsa-pss', ['rsa_pss_pss_sha256', 'rsa_pss_pss_sha384', 'rsa_pss_pss_sha512']],
  ['rsa', ['rsa_pss_rsae_sha256', 'rsa_pss_rsae_sha384', 'rsa_pss_rsae_sha512', 'rsa_pkcs1_sha256', 'rsa_pkcs1_sha384', 'rsa_pkcs1_sha512']],
]

export interface CertificatePreference {
  readonly sigalgs: string
  readonly ciphers: string
}

/**
 * Options of a TLS server that chooses by its own order.
 * @param kind of the default certificate's key, as Node's `asymmetricKeyType`
 * @param ciphers the suites in the order that is wanted otherwise
 */
export function preferNamedCertificates(kind: string | undefined, ciphers: readonly string[]): CertificatePreference {
  const isRsa = kind?.startsWith('rsa') ?? false
  const takesDefault = (suite: string) => !suite.startsWith('TLS_') && suite.includes('ECDSA') !== isRsa
  return {
    sigalgs: lastWhere(algorithms, ([name]) => name === kind)
      .flatMap(([, names]) => names)
      .join(':'),
    ciphers: lastWhere(ciphers, takesDefault).join(':'),
  }
}

function lastWhere<T>(list: readonly T[], isLast: (one: T) => boolean): T[] {
  return [...list.filter((one) => !isLast(one)), ...list.filter(isLast)]
}
