/** Blocks of PEM text (L0, pure). */

const certificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** The blocks that are called certificates; their content is not looked at. Other blocks are skipped, as Go's AppendCertsFromPEM does. */
export function certificateBlocks(text: string): readonly string[] {
  return text.match(certificate) ?? []
}
