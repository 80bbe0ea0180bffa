/** Styles are bundled into one file, and their modules have no exports. */
declare module '*.css'
