/** Issuers and certificates: a root that signs itself, an intermediate that the root signs, and a leaf. */
const group = 'cert-manager.io'
export const namespace = 'default'

export function issuer(name: string, spec: object): object {
  return { apiVersion: `${group}/v1`, kind: 'Issuer', metadata: { name, namespace }, spec }
}

export function caIssuer(name: string, secretName: string): object {
  return issuer(name, { ca: { secretName } })
}

/** The Secret has the name of the Certificate. */
export function certificate(name: string, issuerName: string, spec: object): object {
  return {
    apiVersion: `${group}/v1`,
    kind: 'Certificate',
    metadata: { name, namespace },
    spec: { secretName: name, issuerRef: { name: issuerName, kind: 'Issuer', group }, privateKey: { algorithm: 'ECDSA', size: 256 }, ...spec },
  }
}

export const ingress = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'web', namespace, annotations: { [`${group}/issuer`]: 'intermediate' } },
  spec: {
    tls: [{ hosts: ['web.example.com'], secretName: 'web-tls' }],
    rules: [{ host: 'web.example.com', http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }] } }],
  },
}
