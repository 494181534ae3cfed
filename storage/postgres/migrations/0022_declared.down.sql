DROP TABLE declared_objects;
