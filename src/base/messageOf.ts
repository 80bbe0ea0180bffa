/** The words of anything that was thrown (L0, pure). */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
