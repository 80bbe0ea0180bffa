/** The Kubernetes release that this project implements (L0): the one place that names it. `docs/upgrading.md` says how the next one is taken in. */

export const kubernetesMajor = '1'
export const kubernetesMinor = '36'
/** `1.36`. */
export const kubernetesVersion = `${kubernetesMajor}.${kubernetesMinor}`
/** `v1.36.0`, as nodes and the command line report it. */
export const kubernetesRelease = `v${kubernetesVersion}.0`
/** Clients as old as this minor version work against it. */
export const minCompatibilityMinor = String(Number(kubernetesMinor) - 1)
