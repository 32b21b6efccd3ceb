"""The studio: an arm in the browser that can be touched. Everything of the page's own library is in this room."""
