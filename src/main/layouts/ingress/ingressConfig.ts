/** The configuration of a node's ingress (L5): one JSON file in the node's folder, written by the server that starts the process. */

export interface NodeIngressConfig {
  readonly nodeName: string
  readonly nodeAddress: string
  /** URL of the API as the node reaches it. */
  readonly server: string
  /** PEM texts. */
  readonly ca: string
  readonly clientCert: string
  readonly clientKey: string
  readonly defaultCert: string
  readonly defaultKey: string
}

export const ingressUser = 'system:skiff-ingress'

/**
 * Ports of the node's address. Clients use 80 and 443 of the Service's address, which the node's proxy leads here: Pods with host ports may want those. These
 * are below the node ports and the kernel's own choice of ports, and next to no component's port of Kubernetes.
 */
export const ingressPorts = { http: 10_380, https: 10_343 } as const
