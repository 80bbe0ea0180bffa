/** The name of the plugin for CSI, and its messages as upstream prints them (L3, pure). */
export const csiPlugin = 'kubernetes.io/csi'

/** A message as upstream's plugin prints it. */
export const csiText = (text: string) => `${csiPlugin}: ${text}`
