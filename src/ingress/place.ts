/** The namespace of the ingress, and the name of the Service that clients reach it by (L3). */
export const ingressPlace = { namespace: 'skiff-ingress', name: 'skiff-ingress' }
