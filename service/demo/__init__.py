"""An invented person's year and a dozen papers, to try the store on."""
