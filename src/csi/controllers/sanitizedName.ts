/** A driver's name in the names of Leases and finalizers (L3, pure). Upstream: kubernetes-csi/csi-lib-utils, leaderelection sanitizeName. */
export function sanitizedName(name: string): string {
  const safe = name.replace(/[^a-zA-Z0-9-]/g, '-')
  return safe.endsWith('-') ? `${safe}X` : safe
}
