export const libraries: Readonly<Record<string, string>>
export const entryPoints: Readonly<Record<string, string>>
export const external: string[]
